"""For every alert: series that must make it fire, and series that must leave it quiet.

{alert: (bad series, good series, minutes after which it must fire)}; values in promtool's notation
at one sample a minute. Bad and good differ in job, so that both run through one evaluation.
"""

OK = 'longview_request_duration_seconds_count{job="%s", code="OK"}'


def requests(job, code, bad_rate):
    """`bad_rate` of 1000 requests a minute end with a code."""
    return [(OK % job, f"0+{1000 - bad_rate}x90"),
            (f'longview_request_duration_seconds_count{{job="{job}", code="{code}"}}',
             f"0+{bad_rate}x90")]


def gaps(job, slow):
    """1000 token gaps a minute, all below 0.1 s, or all between 0.1 and 1 s; the ceiling is 0.1."""
    bucket = 'longview_inter_token_latency_seconds_bucket{job="%s", model="m", le="%s"}'
    return [(bucket % (job, "0.1"), "0x90" if slow else "0+1000x90"),
            (bucket % (job, "1"), "0+1000x90"), (bucket % (job, "+Inf"), "0+1000x90"),
            (f'longview_inter_token_ceiling_seconds{{job="{job}", model="m"}}', "0.1x90")]


def ratios(job, factor):
    """1000 batches a minute, each predicted at `factor` times what it took."""
    bucket = 'longview_predicted_vs_actual_ratio_bucket{job="%s", model="m", le="%s"}'
    return [(bucket % (job, edge), "0+1000x90" if factor <= float(edge) else "0x90")
            for edge in ("0.25", "0.5", "1", "2", "4", "+Inf")]


def tokens(job, wasted):
    return [(f'longview_tokens_total{{job="{job}", model="m", kind="prompt"}}', "0+1000x90"),
            (f'longview_wasted_tokens_total{{job="{job}", model="m", reason="cancel"}}',
             f"0+{wasted}x90")]


CASES = {
    "LongviewDown": ([('up{job="longview", instance="a"}', "1x5 0x85")],
                     [('up{job="longview", instance="b"}', "1x90"),
                      ('up{job="node", instance="c"}', "0x90")], 8),
    "LongviewModelNotReady": ([('longview_model_ready{job="bad", model="m"}', "0x90")],
                              [('longview_model_ready{job="good", model="m"}', "0x10 1x80")], 16),
    "LongviewDeviceLost": ([('longview_device_up{job="bad", device="cuda:0"}', "0x90")],
                           [('longview_device_up{job="good", device="cuda:0"}', "1x90")], 6),
    "LongviewServerErrors": (requests("bad", "INTERNAL", 20),
                             requests("good", "INVALID_ARGUMENT", 500), 11),
    "LongviewOverloaded": (requests("bad", "RESOURCE_EXHAUSTED", 100),
                           requests("good", "RESOURCE_EXHAUSTED", 30), 11),
    "LongviewQueueLong": ([('longview_queued_work_seconds{job="bad", instance="a", model="m"}',
                            "8x90"),
                           ('longview_queued_work_seconds{job="bad", instance="a", model="n"}',
                            "4x90")],
                          [('longview_queued_work_seconds{job="good", instance="a", model="m"}',
                            "14x90"),
                           ('longview_queued_work_seconds{job="good", instance="b", model="m"}',
                            "0x90")], 12),
    "LongviewDeadlinesMissed": (requests("bad", "DEADLINE_EXCEEDED", 100),
                                requests("good", "DEADLINE_EXCEEDED", 10), 16),
    "LongviewPredictionsOff": (ratios("bad", 3), ratios("good", 0.9), 40),
    "LongviewCacheFull": ([('longview_generation_cache_usage_ratio{job="bad", model="m"}',
                            "0.99x90")],
                          [('longview_generation_cache_usage_ratio{job="good", model="m"}',
                            "0.99x5 0.5 0.99x5 0.5x80")], 12),
    "LongviewTokensLate": (gaps("bad", True), gaps("good", False), 22),
    "LongviewWorkWasted": (tokens("bad", 400), tokens("good", 50), 28),
    "LongviewKeysRefused": ([('longview_rejected_total{job="bad", reason="auth"}', "0+120x90")],
                            [('longview_rejected_total{job="good", reason="auth"}', "0+30x90"),
                             ('longview_rejected_total{job="good", reason="queue"}', "0+900x90")],
                            12),
    "LongviewRestarting": ([('process_start_time_seconds{job="longview", instance="a"}',
                             "0x10 600x10 1200x10 1800x10 2400x50")],
                           [('process_start_time_seconds{job="longview", instance="b"}',
                             "0x10 600x80"),
                            ('process_start_time_seconds{job="node", instance="c"}', "0+60x90")],
                           46),
}
