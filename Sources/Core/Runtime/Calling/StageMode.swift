// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension StageRunner {
    /// What happens to an item that reaches the stage.
    enum Mode: UInt8 {
        case runs
        /// It has failed: items end here.
        case failed
        /// Paused: a filter lets frames pass.
        case passes
        /// Paused: items end here, and a source gives none.
        case drops
        /// It runs again, and the next item follows a gap.
        case followsGap
    }

    /// What ``setMode(_:)`` has done.
    enum ModeChange {
        case done
        /// The stage was in that mode already.
        case unchanged
        /// The stage has failed.
        case refused
    }
}

/// The mode of a stage, and which of its inputs follow a gap. The stage's thread writes it, any thread may read it.
///
/// All of it is atomic, since other threads read the mode while the stage's thread changes the rest.
struct StageMode: ~Copyable {
    private let code = Atomic<UInt8>(StageRunner.Mode.runs.rawValue)
    private let bypassed = Atomic<Bool>(false)
    private let gap = Atomic<Bool>(false)
    private let keyframeBits = Atomic<UInt64>(0)
    private let gapBits = Atomic<UInt64>(0)

    var value: StageRunner.Mode {
        get { StageRunner.Mode(rawValue: code.load(ordering: .acquiring)) ?? .runs }
        nonmutating set { code.store(newValue.rawValue, ordering: .releasing) }
    }
    /// [stage thread] The usual case, which each item asks for.
    var simplyRuns: Bool {
        @inline(__always) get { code.load(ordering: .relaxed) == StageRunner.Mode.runs.rawValue }
    }
    var hasFailed: Bool { value == .failed }
    var isPaused: Bool { value == .passes || value == .drops }
    /// Whether items pass the stage because it has failed, not because it was paused.
    private(set) var isBypassed: Bool {
        get { bypassed.load(ordering: .acquiring) }
        nonmutating set { bypassed.store(newValue, ordering: .releasing) }
    }
    /// Whether the stage has failed, bypassed or not, and no other instance has taken its place.
    var isDown: Bool { hasFailed || isBypassed }

    // [stage thread]

    /// Whether the next frame that passes the stage by follows a gap. Only true in the mode `passes`.
    var owesGap: Bool {
        get { gap.load(ordering: .relaxed) }
        nonmutating set { gap.store(newValue, ordering: .relaxed) }
    }
    /// A bit for each input whose access units are dropped up to a keyframe: they cannot be decoded without the units
    /// that were left out.
    private var awaitsKeyframe: UInt64 {
        get { keyframeBits.load(ordering: .relaxed) }
        nonmutating set { keyframeBits.store(newValue, ordering: .relaxed) }
    }
    /// A bit for each input whose next item follows a gap.
    private var followsGap: UInt64 {
        get { gapBits.load(ordering: .relaxed) }
        nonmutating set { gapBits.store(newValue, ordering: .relaxed) }
    }

    /// Why an item of the input at `index` ends at a transform or sink: the stage has failed, is paused, or waits for a
    /// keyframe afterwards. Nil where the stage gets the item, marked as the first one after the gap.
    func end(of header: inout ItemHeader, from index: Int) -> DropReason? {
        let input = UInt64(1) << UInt64(index & 63)
        switch value {
        case .failed, .passes, .drops:
            if header.kind == .accessUnit { awaitsKeyframe |= input }
            followsGap = .max
            return hasFailed ? .failed : .paused
        case .runs, .followsGap:
            if awaitsKeyframe & input != 0, !header.isKeyframe { return .untilKeyframe }
            awaitsKeyframe &= ~input
            // The first item follows the gap even where no item came meanwhile.
            if followsGap == 0 { followsGap = input }
            if followsGap & input != 0 { header.isDiscontinuity = true }
            followsGap &= ~input
            // Sound goes on at once; the pictures beside it may still wait for their keyframe.
            guard awaitsKeyframe == 0 else { return nil }
            followsGap = 0
            value = .runs
            return nil
        }
    }

    /// Pauses the stage or lets it go on. A stage that frames cannot pass by drops them.
    func set(_ asked: StageRunner.Mode, canBePassed: Bool) -> StageRunner.ModeChange {
        let mode = asked == .passes && !canBePassed ? .drops : asked
        // A bypassed filter runs again. A stage that follows a gap runs, and its next item must still be marked.
        let isInMode = value == mode || mode == .runs && value == .followsGap
        if isInMode, !isBypassed { return .unchanged }
        let lostItems = value == .drops || value == .followsGap || owesGap || (!canBePassed && isPaused)
        owesGap = mode == .passes && lostItems
        value = mode == .runs && lostItems ? .followsGap : mode
        isBypassed = false
        return .done
    }

    /// The stage fails. Frames pass it where `passes` says so.
    func fail(passes: Bool) {
        owesGap = passes && value == .followsGap
        value = passes ? .passes : .failed
        isBypassed = passes
    }

    /// Lets frames pass a stage that has failed, or no longer lets them.
    func settleBypass(passes: Bool) {
        guard isDown, passes == hasFailed else { return }
        // Those since have been dropped.
        owesGap = passes
        // It is down at each moment of this.
        if passes { isBypassed = true }
        value = passes ? .passes : .failed
        isBypassed = passes
    }

    /// Another instance takes the place of the present one.
    ///
    /// - Parameters:
    ///   - before: The mode before the present instance answered for the last time.
    ///   - wasPaused: Whether the stage was paused then, and had not failed.
    ///   - canBePassed: Whether frames can pass the new instance by.
    func beginAnew(before: StageRunner.Mode, wasPaused: Bool, canBePassed: Bool) {
        // A failed stage has dropped the items since. Frames that passed a failed filter leave no gap, but the one on
        // which it failed does.
        if wasPaused, isDown {
            // The instance before failed in its last answer: the pause holds.
            owesGap = before == .passes && canBePassed
            value = owesGap ? .passes : .drops
            isBypassed = false
        } else if hasFailed {
            value = .followsGap
        } else if isBypassed {
            value = owesGap ? .followsGap : .runs
            isBypassed = false
            owesGap = false
        } else if value == .passes, !canBePassed {
            // The instance before let frames pass while it was paused; this one must not, or cannot.
            value = .drops
            owesGap = false
        }
    }
}
