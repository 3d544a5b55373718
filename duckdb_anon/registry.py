"""Every SQL function of the package, in the order `anon_functions()` lists them."""

from __future__ import annotations

from duckdb_anon.measures.help import anon_functions, describe_release
from duckdb_anon.measures.help.anatomy_tables import QIT, ST
from duckdb_anon.measures.help.anon_sample import MEASURE as ANON_SAMPLE
from duckdb_anon.measures.plans.anon_hierarchy import MEASURE as ANON_HIERARCHY
from duckdb_anon.measures.plans.delta_probability import MEASURE as DELTA_PROBABILITY
from duckdb_anon.measures.plans.diffgen_plan import MEASURE as DIFFGEN_PLAN
from duckdb_anon.measures.plans.rr_parameters import MEASURE as RR_PARAMETERS
from duckdb_anon.measures.queries.cube_error import MEASURE as CUBE_ERROR
from duckdb_anon.measures.queries.estimate import MEASURE as ESTIMATE
from duckdb_anon.measures.queries.relative_error import MEASURE as RELATIVE_ERROR
from duckdb_anon.measures.queries.rewrite_query import MEASURE as REWRITE_QUERY
from duckdb_anon.measures.queries.workload_error import MEASURE as WORKLOAD_ERROR
from duckdb_anon.measures.queries.workload_error import WORKLOAD
from duckdb_anon.measures.risk import equivalence_classes, kl_diversity
from duckdb_anon.measures.risk.attribute_risk import MEASURE as ATTRIBUTE_RISK
from duckdb_anon.measures.risk.composition_risk import MEASURE as COMPOSITION_RISK
from duckdb_anon.measures.risk.delta_presence import MEASURE as DELTA_PRESENCE
from duckdb_anon.measures.risk.disclosure import MEASURE as DISCLOSURE
from duckdb_anon.measures.risk.fragment_risk import MEASURE as FRAGMENT_RISK
from duckdb_anon.measures.risk.inference import MEASURE as INFERENCE
from duckdb_anon.measures.risk.k_map import MEASURE as K_MAP
from duckdb_anon.measures.risk.linkability import MEASURE as LINKABILITY
from duckdb_anon.measures.risk.linkage_risk import MEASURE as LINKAGE_RISK
from duckdb_anon.measures.risk.membership_risk import MEASURE as MEMBERSHIP_RISK
from duckdb_anon.measures.risk.population_uniqueness import MEASURE as POPULATION_UNIQUENESS
from duckdb_anon.measures.risk.rr_risk import MEASURE as RR_RISK
from duckdb_anon.measures.risk.singling_out import MEASURE as SINGLING_OUT
from duckdb_anon.measures.risk.slicing_diversity import MEASURE as SLICING_DIVERSITY
from duckdb_anon.measures.risk.special_uniques import MEASURE as SPECIAL_UNIQUES
from duckdb_anon.measures.utility.apparent_matches import MEASURE as APPARENT_MATCHES
from duckdb_anon.measures.utility.classification_accuracy import MEASURE as CLASSIFICATION_ACCURACY
from duckdb_anon.measures.utility.correlation import MEASURE as CORRELATION
from duckdb_anon.measures.utility.correlation_comparison import MEASURE as CORRELATION_COMPARISON
from duckdb_anon.measures.utility.distortion_ratio import MEASURE as DISTORTION_RATIO
from duckdb_anon.measures.utility.distribution_distance import MEASURE as DISTRIBUTION_DISTANCE
from duckdb_anon.measures.utility.information_loss import MEASURE as INFORMATION_LOSS
from duckdb_anon.measures.utility.k_marginal import MEASURE as K_MARGINAL
from duckdb_anon.measures.utility.propensity import MEASURE as PROPENSITY
from duckdb_anon.measures.utility.regression_comparison import MEASURE as REGRESSION_COMPARISON
from duckdb_anon.measures.utility.rr_reconstruct import MEASURE as RR_RECONSTRUCT
from duckdb_anon.measures.utility.sa_ncp import MEASURE as SA_NCP
from duckdb_anon.measures.utility.unique_exact_matches import MEASURE as UNIQUE_EXACT_MATCHES
from duckdb_anon.methods.anatomy import METHOD as ANATOMY
from duckdb_anon.methods.composition import METHOD as COMPOSITION
from duckdb_anon.methods.diffgen import METHOD as DIFFGEN
from duckdb_anon.methods.hybrid import METHOD as HYBRID
from duckdb_anon.methods.incognito import METHOD as INCOGNITO
from duckdb_anon.methods.laplace_on_groups import METHOD as LAPLACE_ON_GROUPS
from duckdb_anon.methods.merging import METHOD as MERGING
from duckdb_anon.methods.microaggregate import METHOD as MICROAGGREGATE
from duckdb_anon.methods.mondrian import METHOD as MONDRIAN
from duckdb_anon.methods.muco import METHOD as MUCO
from duckdb_anon.methods.muco import TABLES as MUCO_TABLES
from duckdb_anon.methods.muco_groups import GROUPS as MUCO_GROUPS
from duckdb_anon.methods.one_to_m_generalize import METHOD as ONE_TO_M
from duckdb_anon.methods.probabilistic import METHOD as PROBABILISTIC
from duckdb_anon.methods.rank_swap import METHOD as RANK_SWAP
from duckdb_anon.methods.rmr import METHOD as RMR
from duckdb_anon.methods.rr_distort import METHOD as RR_DISTORT
from duckdb_anon.methods.slicing import METHOD as SLICING
from duckdb_anon.model.function_specs import Entry, Method
from duckdb_anon.report.anon_profile import MEASURE as ANON_PROFILE
from duckdb_anon.report.anon_report import MEASURE as ANON_REPORT
from duckdb_anon.report.compare import MEASURE as COMPARE
from duckdb_anon.report.label_statements import MEASURE as LABEL_STATEMENTS
from duckdb_anon.report.recommend import recommending

METHODS: tuple[Method, ...] = (
    MUCO,
    MONDRIAN,
    INCOGNITO,
    ANATOMY,
    ONE_TO_M,
    RMR,
    RR_DISTORT,
    SLICING,
    MERGING,
    MICROAGGREGATE,
    RANK_SWAP,
    COMPOSITION,
    PROBABILISTIC,
    HYBRID,
    DIFFGEN,
    LAPLACE_ON_GROUPS,
)
MEASURES: tuple[Entry, ...] = (
    *equivalence_classes.MEASURES,
    *kl_diversity.MEASURES,
    FRAGMENT_RISK,
    QIT,
    ST,
    INFORMATION_LOSS,
    DISTORTION_RATIO,
    SA_NCP,
    REWRITE_QUERY,
    RELATIVE_ERROR,
    ESTIMATE,
    CUBE_ERROR,
    WORKLOAD,
    WORKLOAD_ERROR,
    COMPARE,
    ANON_PROFILE,
    LABEL_STATEMENTS,
    ANON_HIERARCHY,
    ANON_REPORT,
    recommending(METHODS),
    DISCLOSURE,
    LINKAGE_RISK,
    ATTRIBUTE_RISK,
    SINGLING_OUT,
    LINKABILITY,
    INFERENCE,
    MEMBERSHIP_RISK,
    K_MAP,
    DELTA_PRESENCE,
    POPULATION_UNIQUENESS,
    SPECIAL_UNIQUES,
    MUCO_TABLES,
    MUCO_GROUPS,
    DELTA_PROBABILITY,
    ANON_SAMPLE,
    RR_PARAMETERS,
    RR_RISK,
    RR_RECONSTRUCT,
    DISTRIBUTION_DISTANCE,
    CORRELATION,
    COMPOSITION_RISK,
    SLICING_DIVERSITY,
    CLASSIFICATION_ACCURACY,
    K_MARGINAL,
    PROPENSITY,
    UNIQUE_EXACT_MATCHES,
    APPARENT_MATCHES,
    CORRELATION_COMPARISON,
    REGRESSION_COMPARISON,
    DIFFGEN_PLAN,
)
PURE_FILES: tuple[str, ...] = (equivalence_classes.FILE, kl_diversity.FILE, "randomized_response.sql")
HELP: tuple[Entry, ...] = (
    describe_release.describing(lambda: ENTRIES),
    anon_functions.listing(lambda: ENTRIES),
)
ENTRIES: tuple[Entry, ...] = METHODS + MEASURES + HELP
