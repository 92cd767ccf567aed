# SPDX-License-Identifier: Apache-2.0
"""What a run's exit status says of the program, and not of a machine that is busy with others."""
import re


def without_losses(status, said):
    """0 also where all that went wrong is that a live chain lost frames. `said` is the run's log, as text or as JSON."""
    has_error = re.search(r'^error|"level":"(?:error|critical)"', said, re.M)
    return 0 if status == 1 and "the live chain lost" in said and not has_error else status
