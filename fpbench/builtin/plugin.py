"""The plugin of the components that come with fpbench; they have no privilege over others."""

from fpbench import Lazy, hookimpl


def _here(kind: str, **classes: str) -> list[Lazy]:
    """References to one component a file: the file is named as the component."""
    return [
        Lazy(module.replace("_", "-"), f"fpbench.builtin.{kind}.{module}:{name}")
        for module, name in classes.items()
    ]


@hookimpl
def fpbench_datasets() -> list[Lazy]:
    return _here(
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
    return _here(
        "learners",
        plain="Plain",
        exponentiated_gradient="ExponentiatedGradient",
        threshold_optimizer="ThresholdOptimizer",
        correlation_remover="CorrelationRemover",
        grid_search="GridSearch",
    )


@hookimpl
def fpbench_disclosures() -> list[Lazy]:
    return _here(
        "disclosures",
        published="Published",
        hidden="Hidden",
        estimated="Estimated",
        noisy="Noisy",
    )


@hookimpl
def fpbench_adversaries() -> list[Lazy]:
    return _here(
        "adversaries",
        a1="A1",
        a2="A2",
        a2_proba="A2Proba",
        majority="Majority",
        prior="Prior",
    )


@hookimpl
def fpbench_correctors() -> list[Lazy]:
    return _here(
        "correctors",
        none="NoCorrection",
        exact="Exact",
        cp="CP",
        ip="IP",
        posterior="Posterior",
    )


@hookimpl
def fpbench_mechanisms() -> list[Lazy]:
    return _here("mechanisms", laplace="Laplace")
