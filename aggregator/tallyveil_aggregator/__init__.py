"""What runs at the statistics office: enrolment, intake, estimation and signed releases."""
