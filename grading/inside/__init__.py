"""What runs beside the student's code: these modules import nothing of the project, so a sandbox needs no view of it."""
