"""Where learner-written code runs: bubblewrap with no network, nothing of the course in sight, and limits that hold."""
