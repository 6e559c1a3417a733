"""The plugin of the built-in components; they have no privilege over others."""

from fpbench import hookimpl
from fpbench.plugin import Lazy


def _list_components(kind: str, **classes: str) -> list[Lazy]:
    """References to components of a kind, each in the file of its name."""
    return _name_components(
        kind, {module.replace("_", "-"): f"{module}:{name}" for module, name in classes.items()}
    )


def _name_components(folder: str, places: dict[str, str]) -> list[Lazy]:
    """References to components in a folder: the module and class of each, by name."""
    return [Lazy(name, f"fpbench.builtin.{folder}.{place}") for name, place in places.items()]


@hookimpl
def fpbench_datasets() -> list[Lazy]:
    return [
        *_list_components(
            "datasets",
            adult="Adult",
            bank="Bank",
            census_synthetic="CensusSynthetic",
            compas="Compas",
            credit_card="CreditCard",
            german="German",
            parkinsons="Parkinsons",
        ),
        *_name_components(
            "datasets",
            {
                "acs-income": "acs:ACSIncome",
                "acs-public-coverage": "acs:ACSPublicCoverage",
                "csv": "own_tables:CSV",
                "parquet": "own_tables:Parquet",
                "table": "own_tables:GivenTable",
            },
        ),
    ]


@hookimpl
def fpbench_learners() -> list[Lazy]:
    return [
        *_list_components(
            "learners",
            decision_tree="DecisionTree",
            dp_fermi="DPFermi",
            dp_sgd="DPSGD",
            group_aware="GroupAware",
            plain="Plain",
            exponentiated_gradient="ExponentiatedGradient",
            threshold_optimizer="ThresholdOptimizer",
            correlation_remover="CorrelationRemover",
            grid_search="GridSearch",
        ),
        *_name_components("pate", {"fair-pate": "fair_learner:FairPate", "pate": "learner:Pate"}),
        *_name_components(
            "private_tree",
            {
                "private-fair-tree": "learners:PrivateFairTree",
                "private-forest": "forest_learner:PrivateForest",
                "private-tree": "learners:PrivateTree",
            },
        ),
    ]


@hookimpl
def fpbench_engines() -> list[Lazy]:
    return [
        Lazy("inline", "fpbench.execution.engines.local:InlineEngine"),
        Lazy("loky", "fpbench.execution.engines.local:LokyEngine"),
    ]


@hookimpl
def fpbench_disclosures() -> list[Lazy]:
    return [
        *_name_components(
            "disclosures",
            {
                "estimated": "claims:Estimated",
                "hidden": "claims:Hidden",
                "noisy": "claims:Noisy",
                "report": "counts:Report",
                "means": "counts:Means",
                "structure": "counts:Structure",
            },
        ),
        *_name_components("ferry", {"published": "published:Published"}),
    ]


@hookimpl
def fpbench_adversaries() -> list[Lazy]:
    return [
        *_name_components(
            "adversaries",
            {
                "majority": "prior:Majority",
                "prior": "prior:Prior",
                "twin": "twin:Twin",
                "a2-query": "mehnaz:A2Query",
                "csmia": "mehnaz:CSMIA",
                "lomia": "mehnaz:LOMIA",
                "adapt-aia": "aalmoes:AdaptAIA",
                "adapt-aia-hard": "aalmoes:AdaptAIAHard",
            },
        ),
        *_name_components(
            "ferry",
            {
                "a1": "adversaries:A1",
                "a1-ferry": "adversaries:A1Ferry",
                "a2": "adversaries:A2",
                "a2-ferry": "adversaries:A2Ferry",
                "a2-proba": "adversaries:A2Proba",
            },
        ),
    ]


@hookimpl
def fpbench_correctors() -> list[Lazy]:
    return [
        *_list_components(
            "correctors", likeliest="Likeliest", none="NoCorrection", posterior="Posterior"
        ),
        *_name_components(
            "ferry", {"exact": "correctors:Exact", "cp": "correctors:CP", "ip": "correctors:IP"}
        ),
    ]


@hookimpl
def fpbench_mechanisms() -> list[Lazy]:
    return _name_components(
        "mechanisms",
        {
            "discrete-gaussian": "gaussian:DiscreteGaussian",
            "discrete-laplace": "laplace:DiscreteLaplace",
            "exponential": "exponential:Exponential",
            "gaussian": "gaussian:Gaussian",
            "laplace": "laplace:Laplace",
            "randomised-response": "randomised_response:RandomisedResponse",
        },
    )


@hookimpl
def fpbench_policies() -> list[Lazy]:
    return [
        *_name_components("policies", {"clip": "nearest:Clip", "project": "nearest:Project"}),
        *_name_components(
            "pafer",
            {
                "0/uniform": "policies:ZeroUniform",
                "0/total-valid": "policies:ZeroTotalValid",
                "1/uniform": "policies:OneUniform",
                "1/total-valid": "policies:OneTotalValid",
                "uniform/uniform": "policies:UniformUniform",
                "uniform/total-valid": "policies:UniformTotalValid",
                "total-valid/uniform": "policies:TotalValidUniform",
                "total-valid/total-valid": "policies:TotalValidTotalValid",
            },
        ),
    ]


@hookimpl
def fpbench_auditors() -> list[Lazy]:
    return [
        *_list_components("auditors", group_fairness="GroupFairness"),
        *_name_components("pafer", {"pafer": "auditor:Pafer"}),
        *_name_components("pate", {"excessive-risk": "risk_auditor:ExcessiveRisk"}),
        *_name_components(
            "private_tree", {"individual-fairness": "fairness_auditor:IndividualFairness"}
        ),
    ]
