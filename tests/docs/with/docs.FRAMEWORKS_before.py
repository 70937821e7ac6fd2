# SPDX-License-Identifier: Apache-2.0
"""docs.FRAMEWORKS_before.py - as a reader's interpreter: it finds modules here, and only warns

Frameworks warn of much, and none of it is ours.
"""

import os
import sys
import warnings

sys.path.insert(0, os.getcwd())
warnings.simplefilter("default")
