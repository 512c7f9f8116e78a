"""Everything that newsembed keeps on disk is read and written here.

* ``records``, ``parquet``: the record types, and streams of them in Parquet shards.
* ``manifest``: the folder of a finished job, and the layout of training data in it.
* ``tfrecords``: the schema, encoding and files of training data.
* ``vocabulary``: the vocabulary file.
* ``articles``, ``jsonl``: articles that users bring, as Parquet or JSON lines.
* ``model_folder``, ``weights``, ``huggingface``, ``saved_model``: models, and their exports.
* ``index``, ``embeddings``: the index of a search, and embeddings of articles.
* ``files``: local files, gs:// and s3:// through Beam's filesystems.

Reading does not need TensorFlow, and of local files it does not need Beam, except for ``parquet`` and ``files``.
"""
