# Written by tests/types/stubs.py.
from harp.nn import image as image, initializers as initializers
from harp.nn.activations import (
    celu as celu,
    elu as elu,
    gelu as gelu,
    glu as glu,
    hard_sigmoid as hard_sigmoid,
    hard_silu as _hard_swish,
    hard_silu as hard_silu,
    hard_tanh as hard_tanh,
    identity as identity,
    leaky_relu as leaky_relu,
    log1mexp as log1mexp,
    log_sigmoid as log_sigmoid,
    logmeanexp as logmeanexp,
    mish as mish,
    one_hot as one_hot,
    relu6 as relu6,
    selu as selu,
    silu as _swish,
    silu as silu,
    soft_sign as soft_sign,
    sparse_plus as sparse_plus,
    sparse_sigmoid as sparse_sigmoid,
    squareplus as squareplus,
    standardize as standardize,
)
from harp.nn.attention import dot_product_attention as dot_product_attention
from harp.nn.embeddings import (
    embedding as embedding,
    rotary_embedding as rotary_embedding,
    sinusoidal_positions as sinusoidal_positions,
)
from harp.nn.layers import (
    adaptive_avg_pool as adaptive_avg_pool,
    adaptive_max_pool as adaptive_max_pool,
    avg_pool as avg_pool,
    conv as conv,
    conv_transpose as conv_transpose,
    fold as fold,
    global_avg_pool as global_avg_pool,
    global_max_pool as global_max_pool,
    max_pool as max_pool,
    min_pool as min_pool,
    unfold as unfold,
)
from harp.nn.losses import (
    absolute_error as absolute_error,
    binary_cross_entropy as binary_cross_entropy,
    cosine_distance as cosine_distance,
    cosine_similarity as cosine_similarity,
    ctc_loss as ctc_loss,
    huber_loss as huber_loss,
    kl_divergence as kl_divergence,
    sigmoid_binary_cross_entropy as sigmoid_binary_cross_entropy,
    softmax_cross_entropy as softmax_cross_entropy,
    softmax_cross_entropy_with_integer_labels as softmax_cross_entropy_with_integer_labels,
    squared_error as squared_error,
)
from harp.nn.normalization import (
    batch_norm as batch_norm,
    dropout as dropout,
    group_norm as group_norm,
    instance_norm as instance_norm,
    layer_norm as layer_norm,
    rms_norm as rms_norm,
)
from harp.nn.recurrent import (
    gru as gru,
    gru_parameters as gru_parameters,
    lstm as lstm,
    lstm_parameters as lstm_parameters,
)
from harp.nn.resizing import resize as resize
from harp.nn.weights import load_safetensors as load_safetensors, save_safetensors as save_safetensors
from harp.numpy.activation import (
    log_softmax as log_softmax,
    relu as relu,
    sigmoid as sigmoid,
    softmax as softmax,
    softplus as softplus,
)
from harp.numpy.elementwise import tanh as tanh
from harp.scipy.special.entropy import logsumexp as logsumexp

hard_swish = _hard_swish
swish = _swish
