// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Memory for the blocks that a stage makes from others: two seconds of sound, however it is cut, and at least 1 MB.
/// Pages get memory when they are first used.
func audioSlabBytes(_ format: AudioFormat) -> Int { max(1 << 20, 2 * format.sampleRate * format.bytesPerMoment) }
