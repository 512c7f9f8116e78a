"""TFRecord files of ``tf.train.Example``: the schema of a record, its encoding, and the framing of the file.

``schema`` declares features, ``example`` encodes and decodes one record, ``framing`` has the checksum, ``reader`` reads
local files by position, ``writer`` writes shards through Beam's filesystems. Only ``writer`` imports Beam, none imports
TensorFlow.
"""
