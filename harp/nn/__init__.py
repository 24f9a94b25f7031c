"""Functions of networks: activations, `one_hot` and initial weights under JAX's names, convolutions, pools, `resize`,
files of weights.

>>> import harp.numpy as hnp
>>> from harp import nn
>>> nn.relu6(hnp.asarray([-1.0, 3.0, 9.0]))
Array([0., 3., 6.])
"""

from __future__ import annotations

from harp.lazy import Names, namespace

_NAMES = Names(
    {
        "harp.nn.": "image initializers",
        "harp.nn.activations": "celu elu gelu glu hard_sigmoid hard_silu hard_swish=hard_silu hard_tanh identity "
        "leaky_relu log1mexp log_sigmoid logmeanexp mish one_hot relu6 selu silu soft_sign sparse_plus sparse_sigmoid "
        "squareplus standardize swish=silu",
        "harp.nn.attention": "dot_product_attention",
        "harp.nn.embeddings": "embedding rotary_embedding sinusoidal_positions",
        "harp.nn.layers": "adaptive_avg_pool adaptive_max_pool avg_pool conv conv_transpose fold global_avg_pool "
        "global_max_pool max_pool min_pool unfold",
        "harp.nn.losses": "absolute_error binary_cross_entropy cosine_distance cosine_similarity ctc_loss huber_loss "
        "kl_divergence sigmoid_binary_cross_entropy softmax_cross_entropy softmax_cross_entropy_with_integer_labels "
        "squared_error",
        "harp.nn.normalization": "batch_norm dropout group_norm instance_norm layer_norm rms_norm",
        "harp.nn.recurrent": "gru gru_parameters lstm lstm_parameters",
        "harp.nn.resizing": "resize",
        "harp.nn.weights": "load_safetensors save_safetensors",
        "harp.numpy.activation": "log_softmax relu sigmoid softmax softplus",
        "harp.numpy.elementwise": "tanh",
        "harp.scipy.special.entropy": "logsumexp",
    }
)
__getattr__, __dir__, __all__ = namespace(globals(), _NAMES)
