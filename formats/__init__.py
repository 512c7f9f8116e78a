"""Everything that newsembed keeps on disk is read and written here.

* ``records``, ``parquet``: the record types, and streams of them in Parquet shards.
* ``manifest``, ``digests``: the folder of a finished job, the layout of training data in it, SHA-256 of files.
* ``tfrecords``: the schema, encoding and files of training data.
* ``vocabulary``: the vocabulary file, and an imported tokenizer next to it.
* ``articles``, ``jsonl``: articles that users bring, as Parquet or JSON lines.
* ``model_folder``, ``huggingface``, ``saved_model``, ``t5x``: models, and their exports.
* ``arrays``, ``teacher``: named arrays, safetensors, word vectors; what a teacher knows.
* ``archive``, ``embeddings``: the archive of articles, and embeddings of articles.
* ``files``, ``whole``, ``stores``: local files, gs:// and s3:// through fsspec; files that appear when complete.

Nothing here needs TensorFlow or Beam to read files.
"""
