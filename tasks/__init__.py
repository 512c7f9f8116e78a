"""The training-data contract: features of every TFRecord, the WordPiece vocabulary, seqio tasks."""
