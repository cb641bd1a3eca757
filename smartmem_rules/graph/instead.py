"""What to do about operators of ai.onnx.ml that no rule file defines: what exporters can write in their place."""

from __future__ import annotations

from collections.abc import Mapping

_TEXTS = "it reads or gives texts and maps, of which kernels know none: translate labels before and after the model"
_TREES = "write it as TreeEnsemble (version 5 of ai.onnx.ml), or as tensor operators, as hummingbird-ml does"
_VECTORS = "its kernels compare with support vectors: write them as MatMul, Exp and Add, as hummingbird-ml does"

ML: Mapping[str, str] = {
    "CastMap": _TEXTS,
    "CategoryMapper": _TEXTS,
    "DictVectorizer": _TEXTS,
    "FeatureVectorizer": "it joins columns: write it as Concat along axis 1",
    "Imputer": "it replaces missing values: write it as IsNaN and Where",
    "LabelEncoder": "it looks labels up: translate them before and after the model, or write numbers as Gather",
    "LinearClassifier": "write it as Gemm, Softmax or Sigmoid, and ArgMax",
    "LinearRegressor": "write it as Gemm",
    "Normalizer": "write it as LpNormalization",
    "OneHotEncoder": "write it as OneHot, or as Equal and Cast",
    "SVMClassifier": _VECTORS,
    "SVMRegressor": _VECTORS,
    "Scaler": "write it as Sub and Mul",
    "TreeEnsembleClassifier": _TREES,
    "TreeEnsembleRegressor": _TREES,
    "ZipMap": "it gives maps, not tensors: export the model without it (skl2onnx: options={'zipmap': False})",
}
"""By operator, in ONNX's spelling."""


def instead_of(domain: str, operator: str) -> str | None:
    """What to do about an operator that is not defined; None where nothing is known."""
    return ML.get(operator) if domain == "ai.onnx.ml" else None
