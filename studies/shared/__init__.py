"""What several studies use: options, mining again, run files, trainings, reports and pages."""
