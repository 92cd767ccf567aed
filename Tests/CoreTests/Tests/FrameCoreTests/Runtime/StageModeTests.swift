// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// What a stage's mode says of the items that reach it.
@Suite struct StageModeTests {
    private struct Outcome: Equatable {
        var reason: DropReason?
        var isMarked = false
    }

    private struct State: Equatable {
        var mode: StageRunner.Mode
        var isDown = false
        var owesGap = false
    }

    private func item(
        _ modes: borrowing StageMode, _ kind: ItemKind = .accessUnit, isKeyframe: Bool = false, from input: Int = 0
    ) -> Outcome {
        var header = ItemHeader(kind, metadata: nil)
        if isKeyframe { header.entry = .clean }
        // As the runner asks.
        let reason = modes.simplyRuns ? nil : modes.end(of: &header, from: input)
        return Outcome(reason: reason, isMarked: header.isDiscontinuity)
    }

    private func state(_ modes: borrowing StageMode) -> State {
        State(mode: modes.value, isDown: modes.isDown, owesGap: modes.owesGap)
    }

    /// A stage that was asked for these modes in order.
    private func asked(_ modes: StageRunner.Mode..., canBePassed: Bool = false) -> StageMode {
        let made = StageMode()
        for mode in modes { _ = made.set(mode, canBePassed: canBePassed) }
        return made
    }

    @Test func waitsForAKeyframeAfterAPause() {
        let modes = asked(.drops)
        let paused = item(modes)
        #expect(paused == Outcome(reason: .paused))
        let again = [modes.set(.drops, canBePassed: false), modes.set(.runs, canBePassed: false)]
        #expect(again == [.unchanged, .done])
        let delta = item(modes)
        #expect(delta == Outcome(reason: .untilKeyframe))
        let sound = [item(modes, .audioBlock, from: 1), item(modes, .audioBlock, from: 1)]
        #expect(sound == [Outcome(isMarked: true), Outcome()], "sound goes on at once")
        let waiting = state(modes)
        #expect(waiting == State(mode: .followsGap), "the pictures still wait")
        let keyframe = item(modes, isKeyframe: true)
        #expect(keyframe == Outcome(isMarked: true))
        let running = state(modes)
        #expect(running == State(mode: .runs))
    }

    @Test func marksTheFirstItemWhereNoneCameInAPause() {
        let modes = asked(.drops, .runs)
        let before = (state(modes), modes.set(.runs, canBePassed: false))
        #expect(before == (State(mode: .followsGap), .unchanged))
        let items = [item(modes, .frame), item(modes, .frame)]
        #expect(items == [Outcome(isMarked: true), Outcome()])
    }

    @Test(arguments: [false, true])
    func dropsAtAStageThatFramesCannotPass(canBePassed: Bool) {
        let paused = state(asked(.passes, canBePassed: canBePassed))
        #expect(paused == State(mode: canBePassed ? .passes : .drops))
    }

    @Test func aBypassedStageIsDownUntilAnotherInstanceRuns() {
        let modes = StageMode()
        modes.fail(passes: true)
        let failed = state(modes)
        #expect(failed == State(mode: .passes, isDown: true))
        modes.settleBypass(passes: false)
        let without = state(modes)
        #expect(without == State(mode: .failed, isDown: true))
        modes.settleBypass(passes: true)
        let with = state(modes)
        #expect(with == State(mode: .passes, isDown: true, owesGap: true), "frames were dropped meanwhile")
        modes.beginAnew(before: .passes, wasPaused: false, canBePassed: true)
        let replaced = state(modes)
        #expect(replaced == State(mode: .followsGap))
    }

    @Test(arguments: [false, true])
    func aPauseHoldsForAnotherInstance(canBePassed: Bool) {
        let modes = asked(.passes, canBePassed: true)
        modes.beginAnew(before: .passes, wasPaused: true, canBePassed: canBePassed)
        let replaced = state(modes)
        #expect(replaced == State(mode: canBePassed ? .passes : .drops))
        // The instance before fails in its last answer.
        let failing = asked(.passes, canBePassed: true)
        failing.fail(passes: false)
        failing.beginAnew(before: .passes, wasPaused: true, canBePassed: canBePassed)
        let held = state(failing)
        #expect(held == State(mode: canBePassed ? .passes : .drops, owesGap: canBePassed))
    }

    @Test func anotherInstanceOfAFailedStageFollowsAGap() {
        let modes = StageMode()
        modes.fail(passes: false)
        let reason = item(modes).reason
        #expect(reason == .failed)
        modes.beginAnew(before: .failed, wasPaused: false, canBePassed: true)
        let replaced = state(modes)
        #expect(replaced == State(mode: .followsGap))
    }
}
