"""Every file that newsembed keeps on disk is read and written here: records, tables, manifests, TFRecords, models, indexes."""
