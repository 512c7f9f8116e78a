"""The graph of a SavedModel: a model in TensorFlow, with its tokenizer or for ids."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..formats.saved_model import DEFAULT_SIGNATURE, OUTPUT, QUERY_SIGNATURE, TEXT_SIGNATURE, TOKENS
from ..formats.vocabulary import PAD_ID
from ..formats.weights import unflatten
from .checkpoint import Model
from .encoder import JaxEncoder
from .long_documents import HEAD, tf_rows, tokens_read
from .precision import restored

_LARGEST_BATCH_BITS: Final = 20


def text_module(
    encoder: JaxEncoder, arrays: Mapping[str, Any], platforms: tuple[str, ...]
) -> tuple[Any, dict[str, Any]]:
    """The tf.Module with the parameters as variables, and its signatures."""
    import tensorflow as tf

    vocabulary = encoder.vocabulary
    embed = _converted(encoder.model, encoder.max_length, platforms)
    module = tf.Module()
    module.params = _variables(arrays)
    strings = tf.TensorSpec([None], tf.string)

    def embedding(title: Any, body: Any) -> dict[str, Any]:
        """Embeds texts with the prompt before the title, or before the body where there is no title."""
        if encoder.document_prompt:
            prompt, has_title = tf.constant(encoder.document_prompt), tf.strings.length(title) > 0
            title, body = tf.where(has_title, prompt + title, title), tf.where(has_title, body, prompt + body)
        return embedding_as_is(title, body)

    def embedding_as_is(title: Any, body: Any) -> dict[str, Any]:
        """Embeds texts without a prompt; a document of several rows is their weighted mean."""
        how, length = encoder.long_documents, encoder.max_length
        ragged = vocabulary.tf_encode_documents(title, body, tokens_read(how, length))
        if how == HEAD:
            return {OUTPUT: embed(module.params, _bucketed(ragged, encoder.buckets))[: ragged.nrows()]}
        rows, owners, weights = tf_rows(ragged, how, length)
        vectors = embed(module.params, _bucketed(rows, encoder.buckets))[: rows.nrows()]
        sums = tf.math.segment_sum(vectors * weights[:, None], owners)
        return {OUTPUT: tf.math.l2_normalize(sums, axis=1, epsilon=1e-24)}

    @tf.function(input_signature=[strings, strings], autograph=False)
    def from_parts(title: Any, body: Any) -> dict[str, Any]:
        with tf.control_dependencies(
            [tf.debugging.assert_equal(tf.shape(title), tf.shape(body), "as many titles as bodies")]
        ):
            return embedding(tf.identity(title), body)

    @tf.function(input_signature=[strings], autograph=False)
    def from_text(text: Any) -> dict[str, Any]:
        return embedding(tf.zeros_like(text), text)

    module.from_parts, module.from_text = from_parts, from_text
    signatures = {DEFAULT_SIGNATURE: from_parts, TEXT_SIGNATURE: from_text}
    if encoder.document_prompt or encoder.query_prompt:

        @tf.function(input_signature=[strings], autograph=False)
        def from_query(text: Any) -> dict[str, Any]:
            return embedding_as_is(tf.constant(encoder.query_prompt) + text, tf.zeros_like(text))

        module.from_query = signatures[QUERY_SIGNATURE] = from_query
    return module, signatures


def token_module(
    encoder: JaxEncoder, arrays: Mapping[str, Any], platforms: tuple[str, ...]
) -> tuple[Any, dict[str, Any]]:
    """The tf.Module whose signature takes tokens, int32 [b, s] with s up to the encoder's length."""
    import tensorflow as tf

    embed = _converted(encoder.model, encoder.max_length, platforms)
    module = tf.Module()
    module.params = _variables(arrays)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, TOKENS)], autograph=False)
    def from_tokens(tokens: Any) -> dict[str, Any]:
        return {OUTPUT: embed(module.params, tokens)}

    module.from_tokens = from_tokens
    return module, {DEFAULT_SIGNATURE: from_tokens}


def _variables(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters by their flat names."""
    import tensorflow as tf

    # Variables, not constants: a protocol buffer holds at most 2 GB, and a table of 500 000 words alone takes 1.5 GB.
    return {name: tf.Variable(value, trainable=False, name=name) for name, value in arrays.items()}


def _converted(model: Model, max_length: int, platforms: tuple[str, ...]) -> Any:
    """``(flat variables, tokens int32 [b, s]) -> float32 [b, D]`` as a TensorFlow function.

    b is any number, s any number up to ``max_length``.
    """
    from jax.experimental import jax2tf

    # One program for all platforms: kernels of a single platform cannot be in it.
    module = model.config.portable().module()

    def embed(params: Mapping[str, Any], tokens: Any) -> Any:
        return module.apply({"params": unflatten(restored(params))}, tokens, method="embed")

    return jax2tf.convert(
        embed,
        polymorphic_shapes=[None, "(b, s)"],
        polymorphic_constraints=[f"s <= {max_length}"],
        with_gradient=False,
        native_serialization_platforms=platforms,
    )


def _bucketed(ragged: Any, lengths: Sequence[int]) -> Any:
    """Pads to one of ``lengths`` and a power of two of rows, because each shape takes a second or more to compile."""
    import tensorflow as tf

    longest = tf.reduce_max(tf.concat([ragged.row_lengths(), [1]], 0))
    width = tf.gather(tf.constant(lengths, tf.int64), tf.searchsorted(tf.constant(lengths, tf.int64), longest[None]))[0]
    sizes = tf.constant([1 << bits for bits in range(_LARGEST_BATCH_BITS + 1)], tf.int64)
    rows = ragged.nrows(tf.int64)
    height = tf.gather(sizes, tf.searchsorted(sizes, rows[None]))[0]
    tokens = ragged.to_tensor(default_value=PAD_ID, shape=[None, None])
    missing = tf.stack([height, width]) - tf.shape(tokens, tf.int64)
    return tf.pad(tokens, tf.stack([tf.zeros_like(missing), missing], 1), constant_values=PAD_ID)
