"""Graph neural networks and sparse tensors."""

from __future__ import annotations

from tilewright.methods.method import MethodSection, PublishedMethod

GRAPH_METHODS = MethodSection(
    "Graph neural networks",
    "Message passing and sparse operators. Sparse tensors of ONNX are made dense when read.",
    (
        PublishedMethod(
            "Graphiler",
            "2022, MLSys",
            "Type the values of a message-passing function by where they live (vertex, edge, "
            "type), move work from edges to vertices where operands allow it, and fuse gather, "
            "edge function and reduction.",
        ),
        PublishedMethod(
            "Seastar",
            "2021, EuroSys",
            "Trace a function written for one vertex and emit fused forward and backward kernels "
            "whose groups of threads fit the feature size.",
        ),
        PublishedMethod(
            "FeatGraph",
            "2020, SC",
            "Two templates, generalised SpMM and SDDMM, take a function per edge; the graph is "
            "partitioned for the cache and the feature dimension is scheduled on its own.",
        ),
        PublishedMethod(
            "DGL",
            "2019, arXiv 1909.01315",
            "Message passing as the interface of a framework, run on sparse kernels.",
        ),
        PublishedMethod(
            "PyG",
            "2019, ICLR workshop",
            "Graph networks as PyTorch modules over edge lists, by gather and scatter.",
        ),
    ),
)
