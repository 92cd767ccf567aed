// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct ChangeDeskTests {
    /// The reason is that of the moment of the refusal, whatever the desk has taken since.
    @Test func saysWhyItDoesNotMakeAChange() {
        let desk = ChangeDesk()
        let refusals = Locked<[ChangeDesk.Refusal]>([])
        func post() {
            desk.post {
            } refuse: { refusal in
                refusals.withLock { $0.append(refusal) }
            } start: { _, _ in
            }
        }
        for _ in 0..<ChangeDesk.mostWaiting { post() }
        #expect(refusals.now.isEmpty)
        post()
        #expect(refusals.now == [.full])
        desk.close()
        #expect(refusals.now.count == ChangeDesk.mostWaiting + 1)
        #expect(refusals.now.dropFirst().allSatisfy { $0 == .ended })
        post()
        #expect(refusals.now.last == .ended && refusals.now.count == ChangeDesk.mostWaiting + 2)
    }

    /// A chain that has not begun makes no change yet.
    @Test func tellsWhoeverAskedThatTooManyChangesWait() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(CountSink.self, "sink")
        let chain = try Chain(sketch.request)
        let answers = CommandAnswers()
        for number in 0...ChangeDesk.mostWaiting { chain.pause(stage: "sink", reply: answers.reply(number)) }
        #expect(answers.count == 1)
        let answer = answers[ChangeDesk.mostWaiting]
        #expect(
            answer?.text == "sink: 64 changes are already waiting. Send the command again when they are answered.")
        #expect(answer?.isBusy == true)
        withExtendedLifetime(chain) {}
    }

    /// The stage is tried again while the chain runs, and not once it has ended.
    @Test func forgetsNoRestartForWhichItHasNoRoom() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(CountSink.self, "sink", onError: .restart)
        let chain = try Chain(sketch.request)
        let runner = try #require(chain.graph.runner(id: "sink"))
        #expect(!chain.restarts.judge(runner, FrameHostError(.callFailed, what: "it has failed"), now: 0).isOut)
        #expect(chain.restarts.due(now: .max) == [runner.number])
        let answers = CommandAnswers()
        for number in 0..<ChangeDesk.mostWaiting { chain.pause(stage: "sink", reply: answers.reply(number)) }
        #expect(answers.count == 0)
        chain.restart(runner.number)
        #expect(chain.restarts.due(now: .max) == [runner.number])
        chain.changes.close()
        chain.restart(runner.number)
        #expect(chain.restarts.due(now: .max).isEmpty)
        withExtendedLifetime(chain) {}
    }
}
