// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import FrameCore

/// What a plan refuses before anything runs: outputs that go nowhere, more memory than there is.
@Suite struct PlanFaultTests {
    private func faults(_ request: ChainRequest) -> [String] {
        do {
            _ = try Chain.plan(request)
            return []
        } catch {
            return (error as? FrameHostErrors)?.errors.map(\.description) ?? ["\(error)"]
        }
    }

    // MARK: What is listed

    /// A picture sees the codecs of pictures and a sound those of sound; all where there are none of a kind, or where it is
    /// not known.
    @Test func aMessageListsWhatConcernsTheInput() {
        typealias Media = StageInfo.Media
        let takes = Media.several([.encoded(.h264, .h265, .aac, .opus), .motion])
        let (pictures, sounds) = (Media.encoded(.h264, .h265), Media.encoded(.aac, .opus))
        #expect(takes.concerning(.video(.i420)) == pictures && takes.concerning(.audio) == sounds)
        #expect(takes.concerning(.encoded(.h265)) == pictures && takes.concerning(.encoded(.mp3)) == sounds)
        #expect(takes.concerning(.encoded(Codec(rawValue: "ac3"))) == takes)
        #expect(pictures.concerning(.audio) == pictures && sounds.concerning(.video(.i420)) == sounds)
        #expect(Media.video(.i420).concerning(.audio) == .video(.i420))
    }

    // MARK: Outputs that nobody takes

    @Test func refusesAChainWithoutASink() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(ProbeFilter.self, "look")
        #expect(
            faults(sketch.request) == [
                "test.json: stages[1]: no stage takes what 'look' (probe) gives. Name it in a later stage (\"from\": \"look\"), put a sink after it, or write \"unread\": true if it ends here on purpose."
            ])
    }

    @Test func refusesTheFirstOfTwoSourcesInARow() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "a")
        try sketch.add(CountingSource.self, "b")
        try sketch.add(RecordingSink.self, "sink")
        let found = faults(sketch.request)
        #expect(found.count == 1)
        #expect(
            found.first?.hasPrefix("test.json: stages[0]: no stage takes what 'a' (counting-source) gives. ") == true)
    }

    @Test func letsAStageEndOnPurpose() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 5}"#)
        try sketch.add(ProbeFilter.self, "look")
        sketch.request.stages[1].isUnread = true
        let chain = try Chain(sketch.request)
        #expect(chain.run().isSuccess)
        #expect(chain.runners[1].counters.unconnected.value == 5)
    }

    @Test func refusesAMarkThatIsNotTrue() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(RecordingSink.self, "sink")
        sketch.request.stages[0].isUnread = true
        sketch.request.stages[1].isUnread = true
        #expect(
            faults(sketch.request) == [
                "test.json: stages[0].unread: 'sink' takes what 'src' gives. Leave 'unread' out.",
                "test.json: stages[1].unread: 'sink' (recording-sink) has no output. Leave 'unread' out.",
            ])
    }

    // MARK: Inputs

    /// Behind a sink, and behind what takes from it: said once, with the stage to name.
    @Test func saysOnceThatASinkHasNoOutputAndWhichStageToName() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(RecordingSink.self, "file")
        try sketch.add(ProbeFilter.self, "look")
        try sketch.add(RecordingSink.self, "other")
        #expect(
            faults(sketch.request) == [
                "test.json: stages[2].from: 'file' (recording-sink) has no output. Name the stage whose output 'look' takes: \"from\": \"src\"."
            ])
    }

    /// A command that attaches a branch names the input of its first stage, so no remedy may ask for another 'from'.
    @Test func saysOfABranchToAttachOnlyWhatItsCommandCanChange() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(RecordingSink.self, "file")
        try sketch.add(RecordingSink.self, "late")
        sketch.request.stages[2].beginsBranch = true
        #expect(
            faults(sketch.request) == [
                "test.json: stages[2].from: 'file' (recording-sink) has no output. Attach the branch to a stage that has an output, such as 'src'."
            ])
        var other = ChainSketch()
        try other.add(CountingSource.self, "src")
        try other.add(RecordingSink.self, "file")
        try other.add(CountingSource.self, "second")
        try other.add(RecordingSink.self, "last")
        other.request.stages[2].from = [0]
        other.request.stages[2].beginsBranch = true
        #expect(
            faults(other.request) == [
                "test.json: stages[2].from: 'second' is a source (counting-source) and takes no input. Begin the branch with a stage that takes an input."
            ])
    }

    /// Only the first of its inputs is the command's, so it can name others in 'from'.
    @Test func saysOfAFurtherInputOfABranchWhichStageToName() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(RecordingSink.self, "file")
        try sketch.add(KindRecorder.self, "late", from: ["src", "file"])
        sketch.request.stages[2].beginsBranch = true
        #expect(
            faults(sketch.request) == [
                "test.json: stages[2].from: 'file' (recording-sink) has no output. Name the stage whose output 'late' takes: \"from\": \"src\"."
            ])
    }

    @Test func saysOfACircleOnlyThatItIsOne() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(ProbeFilter.self, "look")
        try sketch.add(RecordingSink.self, "file")
        try sketch.add(RecordingSink.self, "other", from: ["src"])
        sketch.request.stages[1].from = [2]
        let found = faults(sketch.request)
        #expect(found.count == 1, "\(found)")
        #expect(found.first?.contains("'look' and 'file' feed each other in a circle.") == true, "\(found)")
    }

    @Test func saysOfASourceWithAnInputOnlyThatItTakesNone() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(RecordingSink.self, "file")
        try sketch.add(CountingSource.self, "second")
        try sketch.add(RecordingSink.self, "last")
        sketch.request.stages[2].from = [1]
        #expect(
            faults(sketch.request) == [
                "test.json: stages[2].from: 'second' is a source (counting-source) and takes no input. Leave 'from' out."
            ])
    }

    // MARK: Memory

    @Test func refusesAPlanThatNeedsMoreMemoryThanThereIs() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(ProbeFilter.self, "look", link: LinkRequest(queue: 4000))
        try sketch.add(RecordingSink.self, "sink")
        sketch.request.memory = AvailableMemory(bytes: 10 << 20, holder: "the control group /app")
        #expect(
            faults(sketch.request) == [
                "test.json: the chain needs 15.6 MiB of memory, and the control group /app has only 10.0 MiB available; the largest part is 15.6 MiB, 4002 buffers of 16x16 gray8 at 'src'. Use a smaller picture, shorter queues (\"link\": { \"queue\", \"megabytes\" }) or fewer \"buffers\", or run the chain on a machine with more memory."
            ])
        sketch.request.memory = AvailableMemory(bytes: 16 << 20)
        #expect(faults(sketch.request).isEmpty)
    }

    /// What an encoder keeps of the frames inside it: 16 frames, and what stages say of each.
    @Test func countsWhatPicturesInsideAStageSayOfThemselves() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(TapMarker.self, "mark")
        try sketch.add(GraphEncoder.self, "enc", options: #"{"delay": 16}"#)
        try sketch.add(GraphSink.self, "sink")
        sketch.request.memory = AvailableMemory(bytes: .max)
        let planned = try ChainPlanner(sketch.request, clock: ManualClock()).plan()
        let plan = planned.plan
        let buffers = plan.budget.pools.indices.reduce(0) { $0 + plan.budget.pools[$1].size * plan.poolBufferBytes[$1] }
        let units = plan.slabs.reduce(0) { $0 + $1.byteCount }
        let stage = planned.stage("enc")
        let headers = HeldHeaders.byteCount(
            .transform, input: stage.inputs.first, output: stage.output, stage.demand, planned.layout)
        #expect(headers >= 18 * (MemoryLayout<ItemHeader>.stride + planned.layout.byteCount))
        sketch.request.memory = AvailableMemory(bytes: buffers + units + headers - 1)
        #expect(faults(sketch.request).count == 1)
        sketch.request.memory = AvailableMemory(bytes: buffers + units + headers)
        #expect(faults(sketch.request).isEmpty)
    }

    @Test func asksTheMachineAndEveryControlGroupOnTheWay() throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("framehost-memory-\(UUID())")
        defer { try? FileManager.default.removeItem(at: root) }
        func write(_ path: String, _ text: String) throws {
            let file = root.appendingPathComponent(path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        func now() -> AvailableMemory? { AvailableMemory.now(root: root.path) }
        #expect(now() == nil)
        try write("proc/meminfo", "MemTotal:  8000 kB\nMemFree: 1 kB\nMemAvailable:    3000 kB\n")
        #expect(now() == AvailableMemory(bytes: 3000 * 1024))
        try write("proc/self/cgroup", "0::/app/job\n")
        try write("sys/fs/cgroup/app/memory.max", "2000000\n")
        try write("sys/fs/cgroup/app/memory.current", "1500000\n")
        try write("sys/fs/cgroup/app/memory.stat", "anon 1\ninactive_file 300000\nactive_file 100000\n")
        try write("sys/fs/cgroup/app/job/memory.max", "max\n")
        #expect(now() == AvailableMemory(bytes: 900_000, holder: "the control group /app"))
        // More in use than the limit says, and figures nobody can have: no trap.
        try write("sys/fs/cgroup/app/memory.current", "9223372036854775807\n")
        #expect(now() == AvailableMemory(bytes: 0, holder: "the control group /app"))
        try write("proc/meminfo", "MemAvailable: 9223372036854775807 kB\n")
        try write("proc/self/cgroup", "4:cpu,memory:/old\n")
        try write("sys/fs/cgroup/memory/old/memory.limit_in_bytes", "9223372036854771712\n")
        #expect(now() == nil || now()!.bytes == .max)
    }
}
