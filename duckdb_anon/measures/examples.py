"""A call of every function, shown by anon_functions and run by the tests.

They read `people`, the labelled table of README's example, `visits`, in which persons have several rows, and
releases of these, each made by the call that stands here for its method; the measures need their row_id.
"""

from __future__ import annotations

EXAMPLES = {
    "muco": "CREATE TABLE release AS FROM muco('people', 0.2, row_id := true)",
    "mondrian": "CREATE TABLE boxes AS FROM mondrian('people', 5, l := 3, row_id := true)",
    "incognito": "CREATE TABLE levels AS FROM incognito('people', 5, l := 2)",
    "anatomy": "CREATE TABLE buckets AS FROM anatomy('people', 5)",
    "one_to_m_generalize": "CREATE TABLE persons AS FROM one_to_m_generalize('visits', 2, 2, row_id := true)",
    "rmr": "CREATE TABLE clusters AS FROM rmr('visits', 2)",
    "rr_distort": "CREATE TABLE randomized AS FROM rr_distort('people', p := 0.8)",
    "slicing": "CREATE TABLE sliced AS FROM slicing('people', 3, sensitive_column := 'alone')",
    "merging": "CREATE TABLE merged AS FROM merging('people', 3)",
    "composition": "CREATE TABLE sampled AS FROM composition('people', 5)",
    "probabilistic": "CREATE TABLE second AS FROM probabilistic('people', 5)",
    "hybrid": "CREATE TABLE mixed AS FROM hybrid('people', 5)",
    "diffgen": "CREATE TABLE noisy AS FROM diffgen('people', 1.0, domain := 'observed')",
    "laplace_on_groups": "CREATE TABLE counted AS FROM laplace_on_groups('people', 5, 1.0)",
    "k_anonymity": "FROM k_anonymity('people')",
    "l_diversity": "FROM l_diversity('boxes', ['age', 'gender', 'education', 'hours_per_week'], 'salary')",
    "t_closeness": "FROM t_closeness('people')",
    "reidentification_risk": "FROM reidentification_risk('people', threshold := 0.2)",
    "class_statistics": "FROM class_statistics('people')",
    "equivalence_classes": "FROM equivalence_classes('people') ORDER BY class_size LIMIT 10",
    "kl_diversity": "FROM kl_diversity('persons', ['age'], 'disease')",
    "km_anonymity": "FROM km_anonymity('persons', ['age'], 'disease', m := 2)",
    "fragment_risk": "FROM fragment_risk('visits', 'persons', m := 2)",
    "anatomy_qit": "FROM anatomy_qit('buckets')",
    "anatomy_st": "FROM anatomy_st('buckets')",
    "information_loss": "FROM information_loss('people', 'boxes')",
    "distortion_ratio": "FROM distortion_ratio('visits', 'persons', hierarchies := {'age': 'ages'})",
    "sa_ncp": "FROM sa_ncp('visits', 'persons')",
    "rewrite_query": "SELECT rewrite_query('SELECT count(*) FROM people WHERE age < 40', 'people', 'boxes')",
    "relative_error": "FROM relative_error('SELECT gender, count(*) FROM people GROUP BY gender', 'people', 'boxes')",
    "cube_error": "FROM cube_error('people', 'boxes', dims := ['gender', 'education'])",
    "workload": "FROM workload('people', 10, dims := 2)",
    "workload_error": "FROM workload_error('people', 'boxes', 100, dims := 2, aggregate := 'sum(salary)')",
    "compare": "FROM compare('people', ['release', 'boxes', 'buckets'], n := 100)",
    "anon_report": "FROM anon_report('people', ['release', 'boxes'], 'report.html')",
    "recommend": "FROM recommend('people', max_risk := 0.02, methods := ['muco', 'anatomy'], rows := 2000)",
    "disclosure": "FROM disclosure('people', 'release', p_match := 0.7)",
    "muco_tables": "FROM muco_tables('people', 0.2) LIMIT 10",
    "delta_probability": "FROM delta_probability('people', 0.2)",
    "anon_sample": "FROM anon_sample('census', 1000, seed := 1)",
    "rr_parameters": "FROM rr_parameters('people', 2, qi := ['gender', 'education'])",
    "rr_risk": "FROM rr_risk('people', p := 0.8)",
    "rr_reconstruct": "FROM rr_reconstruct('randomized', ['gender'])",
    "distribution_distance": "FROM distribution_distance('people', 'randomized', columns := ['gender', 'education'])",
    "correlation": "FROM correlation('people')",
    "composition_risk": (
        "FROM composition_risk('boxes', 'second', 'people', qi := ['age', 'gender', 'education', 'hours_per_week'], "
        "sensitive := 'salary')"
    ),
    "slicing_diversity": "FROM slicing_diversity('people', 'sliced')",
    "classification_accuracy": "FROM classification_accuracy('people', 'boxes', 'gender')",
    "diffgen_plan": "FROM diffgen_plan('people', 1.0)",
    "anon_functions": "FROM anon_functions() WHERE \"function\" = 'muco'",
}
