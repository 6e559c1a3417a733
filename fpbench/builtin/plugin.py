"""The plugin of the built-in components; they have no privilege over others."""

from fpbench import Lazy, hookimpl


def _list_components(kind: str, **classes: str) -> list[Lazy]:
    """References to components of a kind, each in the file of its name."""
    return [
        Lazy(module.replace("_", "-"), f"fpbench.builtin.{kind}.{module}:{name}")
        for module, name in classes.items()
    ]


@hookimpl
def fpbench_datasets() -> list[Lazy]:
    return _list_components(
        "datasets",
        acs_income="ACSIncome",
        acs_public_coverage="ACSPublicCoverage",
        adult="Adult",
        bank="Bank",
        census_synthetic="CensusSynthetic",
        compas="Compas",
        credit_card="CreditCard",
        csv="CSV",
        german="German",
        parkinsons="Parkinsons",
        parquet="Parquet",
        table="GivenTable",
    )


@hookimpl
def fpbench_learners() -> list[Lazy]:
    return _list_components(
        "learners",
        decision_tree="DecisionTree",
        pate="Pate",
        group_aware="GroupAware",
        plain="Plain",
        private_fair_tree="PrivateFairTree",
        private_tree="PrivateTree",
        exponentiated_gradient="ExponentiatedGradient",
        threshold_optimizer="ThresholdOptimizer",
        correlation_remover="CorrelationRemover",
        grid_search="GridSearch",
    )


@hookimpl
def fpbench_engines() -> list[Lazy]:
    return [
        Lazy("inline", "fpbench.execution.engines.local:InlineEngine"),
        Lazy("loky", "fpbench.execution.engines.local:LokyEngine"),
    ]


@hookimpl
def fpbench_disclosures() -> list[Lazy]:
    return _list_components(
        "disclosures",
        published="Published",
        hidden="Hidden",
        estimated="Estimated",
        noisy="Noisy",
        report="Report",
        structure="Structure",
    )


@hookimpl
def fpbench_adversaries() -> list[Lazy]:
    classes = {
        "a1": "ferry:A1",
        "a1-ferry": "ferry:A1Ferry",
        "a2": "ferry:A2",
        "a2-ferry": "ferry:A2Ferry",
        "a2-proba": "ferry:A2Proba",
        "a2-query": "mehnaz:A2Query",
        "csmia": "mehnaz:CSMIA",
        "lomia": "mehnaz:LOMIA",
        "adapt-aia": "aalmoes:AdaptAIA",
        "adapt-aia-hard": "aalmoes:AdaptAIAHard",
        "twin": "twin:Twin",
    }
    return [
        *(Lazy(name, f"fpbench.builtin.adversaries.{cls}") for name, cls in classes.items()),
        *_list_components("adversaries", majority="Majority", prior="Prior"),
    ]


@hookimpl
def fpbench_correctors() -> list[Lazy]:
    return _list_components(
        "correctors",
        none="NoCorrection",
        exact="Exact",
        cp="CP",
        ip="IP",
        posterior="Posterior",
    )


@hookimpl
def fpbench_mechanisms() -> list[Lazy]:
    return _list_components(
        "mechanisms",
        discrete_gaussian="DiscreteGaussian",
        discrete_laplace="DiscreteLaplace",
        exponential="Exponential",
        gaussian="Gaussian",
        laplace="Laplace",
    )


@hookimpl
def fpbench_policies() -> list[Lazy]:
    paper = {
        "0/uniform": "ZeroUniform",
        "0/total-valid": "ZeroTotalValid",
        "1/uniform": "OneUniform",
        "1/total-valid": "OneTotalValid",
        "uniform/uniform": "UniformUniform",
        "uniform/total-valid": "UniformTotalValid",
        "total-valid/uniform": "TotalValidUniform",
        "total-valid/total-valid": "TotalValidTotalValid",
    }
    return [
        *(Lazy(name, f"fpbench.builtin.policies.paper:{cls}") for name, cls in paper.items()),
        *_list_components("policies", clip="Clip", project="Project"),
    ]


@hookimpl
def fpbench_auditors() -> list[Lazy]:
    return _list_components(
        "auditors",
        excessive_risk="ExcessiveRisk",
        group_fairness="GroupFairness",
        individual_fairness="IndividualFairness",
        pafer="Pafer",
    )
