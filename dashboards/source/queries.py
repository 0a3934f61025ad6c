# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Expressions that several dashboards have, and the targets of panels."""

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

# What the variables select, of metrics of a node, of a GPU and of a job.
NODE = 'node=~"$node"'
GPU = NODE + ',gpu=~"$gpu"'
JOB = GPU + ',namespace=~"$namespace",pod=~"$pod"'

# How a series is called. Where Prometheus names what it scrapes as a job's pod is named (honorLabels), only metrics of
# jobs have a job's labels.
OF_GPU = "{{node}} GPU {{gpu}}"
OF_POD = "{{namespace}}/{{pod}}"
OF_JOB = "{{namespace}}/{{pod}}/{{container}}"


def target(expr, legend="", **others):
    """A series over time."""
    return {"datasource": DATASOURCE, "editorMode": "code", "expr": expr, "legendFormat": legend or "__auto", "range": True,
            **others}


def now(expr, legend=""):
    """The latest value only."""
    return target(expr, legend, range=False, instant=True)


def cells(expr):
    """The latest values, for a table."""
    return target(expr, range=False, instant=True, format="table")


def buckets(metric, labels):
    """A histogram's counts by bucket, for a heat map."""
    return target(f"sum by (le) (increase({metric}_bucket{{{labels}}}[$__rate_interval]))", "{{le}}", format="heatmap")


def rate(metric, labels, by, window="$__rate_interval"):
    return f"sum by ({by}) (rate({metric}{{{labels}}}[{window}]))"


def increase(metric, labels, by, window="$__rate_interval"):
    return f"sum by ({by}) (increase({metric}{{{labels}}}[{window}]))"


def quantiles(metric, labels, by="", shares=(0.5, 0.99)):
    """A target for each quantile of a histogram."""
    names = f"{by}, le" if by else "le"
    legend = " ".join(f"{{{{{name.strip()}}}}}" for name in by.split(",")) + " " if by else ""
    return [target(f"histogram_quantile({share}, {rate(f'{metric}_bucket', labels, names)})", f"{legend}p{share * 100:g}")
            for share in shares]
