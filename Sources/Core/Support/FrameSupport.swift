// SPDX-License-Identifier: Apache-2.0

internal import FrameSupport

// Core's own names for what it uses of the module below it, so that none of its files, nor its tests, needs the import.
typealias Condition = FrameSupport.Condition
typealias MonotonicTime = FrameSupport.MonotonicTime
typealias NamedThread = FrameSupport.NamedThread
typealias NoThread = FrameSupport.NoThread
typealias PipeEnds = FrameSupport.PipeEnds
typealias Transfer = FrameSupport.Transfer
typealias WaitableFlag = FrameSupport.WaitableFlag
