"""Calls of every method and measure that are tried on originals whose columns are called as shapes call theirs.

`{o}` is the original, `{r}` its release, `{qi}`, `{s}`, `{keep}` and `{rest}` its columns by role.
"""

from __future__ import annotations

CALLS = {
    "muco": "0.5", "mondrian": "2", "incognito": "2, max_suppression := 0.5", "anatomy": "2",
    "rr_distort": "p := 0.8", "slicing": "2", "merging": "2", "composition": "2", "probabilistic": "2",
    "hybrid": "2", "diffgen": "5.0, domain := 'observed'", "laplace_on_groups": "2, 5.0",
    "microaggregate": "2", "rank_swap": "50",
}  # fmt: skip
MEASURES = (
    "k_anonymity('{r}', qi := {qi}, keep := {rest})",
    "l_diversity('{r}', qi := {qi}, sensitive := '{s}', keep := {keep})",
    "class_statistics('{r}', qi := {qi}, keep := {rest})",
    "information_loss('{o}', '{r}')",
    "distortion_ratio('{o}', '{r}')",
    "disclosure('{o}', '{r}')",
    "composition_risk('{r}', '{r}', '{o}')",
    "slicing_diversity('{o}', '{r}')",
    "k_map('{r}', '{o}')",
    "delta_presence('{r}', '{o}')",
    "propensity('{o}', '{r}', columns := ['a', 'g', '{s}'], permutations := 1, seed := 1)",
    "correlation_comparison('{o}', '{r}', seed := 1)",
    "k_marginal('{o}', '{r}', columns := ['a', 'g', '{s}'], seed := 1)",
    "unique_exact_matches('{o}', '{r}', seed := 1)",
    "apparent_matches('{o}', '{r}', seed := 1)",
    "regression_comparison('{o}', '{r}', 'a', columns := ['g', '{s}'], seed := 1)",
    "distribution_distance('{o}', '{r}', columns := ['g', '{s}'])",
    "correlation('{r}', columns := ['g', '{s}'], sensitive := '{s}', qi := {qi}, keep := {keep})",
    "workload_error('{o}', '{r}', 6, dims := 2, seed := 1, selectivity := 0.5)",
    "workload_error('{o}', '{r}', 6, dims := 1, aggregate := 'sum(a)', seed := 2, selectivity := 0.5)",
    "relative_error('select g, count(*) as n, sum(a) as total from {o} where a < 30 group by g', '{o}', '{r}')",
    "relative_error('select count(*) as n from {o} where \"{s}\" is not null', '{o}', '{r}')",
    "cube_error('{o}', '{r}', dims := ['g'])",
    "compare('{o}', ['{r}'], n := 5, dims := 2, seed := 3, p_match := 0.7)",
    "classification_accuracy('{o}', '{r}', 'g', folds := 2, seed := 1)",
    "reidentification_risk('{r}', qi := {qi}, keep := {rest})",
    "equivalence_classes('{r}', qi := {qi}, keep := {rest})",
    "t_closeness('{r}', qi := {qi}, sensitive := '{s}', keep := {keep})",
    "kl_diversity('{r}', qi := {qi}, sensitive := '{s}', keep := {keep})",
    "km_anonymity('{r}', qi := {qi}, sensitive := '{s}', m := 2, keep := {keep})",
    "linkage_risk('{o}', '{r}', attackers := ['exact', 'nearest'], sensitive := '{s}')",
    "attribute_risk('{o}', '{r}', attackers := ['exact'], sensitive := '{s}')",
    "singling_out('{o}', '{r}', attacks := 20, seed := 1)",
    "linkability('{o}', '{r}', columns_a := ['a'], columns_b := ['g'], seed := 1)",
    "inference('{o}', '{r}', seed := 1)",
    "membership_risk('{o}', '{r}', holdout := '{o}', seed := 1)",
)
OF_PERSONS = {"sa_ncp", "fragment_risk"}
"""Measures of lists of nodes, which none of these releases has."""
