"""What studies of many small trainings share: mining again with other options, resumable runs, their evaluation, the command lines."""
