// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Where a fault is, as a value and as text.
@Suite struct FaultPlaceTests {
    private let member = FaultPlace(
        file: "camera.json", position: TextPlace(line: 7, column: 5), path: "stages[2].from", stage: "enc")

    @Test func becomesText() {
        #expect(FaultPlace().description == "")
        #expect(member.description == "camera.json:7:5: stages[2].from")
        #expect(FaultPlace(file: "camera.json", path: "spare").description == "camera.json: spare")
        #expect(FaultPlace(file: "camera.json").description == "camera.json")
        #expect(FaultPlace(file: "a.json", position: TextPlace(line: 0, column: 0)).description == "a.json")
        // What the command line said stands in the file's stead; programs still find the member.
        let argument = FaultPlace(file: "c.json", path: "stages[0].rate", argument: "--set cam.rate=3", stage: "cam")
        #expect(argument.description == "--set cam.rate=3")
        #expect(argument.path == "stages[0].rate")
        var running = FaultPlace(stage: "cam", title: "cam (v4l2-source)")
        #expect(running.description == "cam (v4l2-source)")
        running.frame = 1841
        #expect(running.description == "cam (v4l2-source): frame 1841")
        running.pts = MediaTime(seconds: 61.366)
        running.words = "/dev/video0"
        #expect(running.description == "cam (v4l2-source): frame 1841, PTS 61.366 s: /dev/video0")
        // The times of a live chain are the clock's, which no reader can place.
        running.sinceStart = MediaTime(seconds: 0.4)
        #expect(running.description == "cam (v4l2-source): frame 1841, 0.400 s after the start: /dev/video0")
        let words: FaultPlace = "model"
        #expect(words.description == "model" && words == FaultPlace("model"))
    }

    @Test func keepsWhatItIsWhenNothingIsAround() {
        let fault = FrameHostError(.broken, place: member, what: "it broke")
        #expect(FrameHostError.wrap(fault) == fault)
        #expect(FrameHostError.wrap(fault, place: "").place == member)
        #expect(
            fault.within("outer").description
                == "outer: camera.json:7:5: stages[2].from: it broke. \(FrameHostError.report)")
        let around = FrameHostError(.broken, what: "it broke").within(member)
        #expect(around.place == member)
        #expect(FrameHostError(.broken, place: "out.mp4", what: "is full").within(member).place.stage == "enc")
    }

    @Test func comesInTheOrderOfTheFile() {
        func place(_ line: Int, _ column: Int) -> FaultPlace {
            FaultPlace(file: "c.json", position: TextPlace(line: line, column: column))
        }
        #expect(place(2, 9).precedes(place(10, 1)))
        #expect(place(2, 1).precedes(place(2, 9)) && !place(2, 9).precedes(place(2, 9)))
        #expect(FaultPlace(argument: "--set a.b=c").precedes(place(1, 1)))
        #expect(FaultPlace(file: "c.json").precedes(place(1, 1)))
    }

    // MARK: The planner's

    /// A chain that is wrong in one member, and where that member stands.
    @Test func pointsAtTheMemberThatIsAtFault() throws {
        func place(_ change: (inout ChainSketch) throws -> Void) throws -> FaultPlace? {
            var chain = ChainSketch()
            try change(&chain)
            for index in chain.request.stages.indices {
                chain.request.stages[index].place = TextPlace(line: 10 * index + 10, column: 5)
                for (number, key) in ["from", "link", "link.queue", "link.whenFull", "unread"].enumerated() {
                    chain.request.stages[index].ownPlaces[key] = TextPlace(line: 10 * index + 11 + number, column: 9)
                }
            }
            chain.request.ownPlaces["buffers.cam"] = TextPlace(line: 99, column: 20)
            chain.request.ownPlaces["buffers[\"my-cam\"]"] = TextPlace(line: 98, column: 20)
            do {
                _ = try Chain.plan(chain.request)
                return nil
            } catch let faults as FrameHostErrors {
                return faults.errors.first?.place
            }
        }
        #expect(
            try place { chain in
                try chain.add(CountingSource.self, "cam", options: #"{ "floor": 5 }"#)
                try chain.add(RecordingSink.self, "file")
                chain.request.buffers[0] = 5
            }
                == FaultPlace(
                    file: "test.json", position: TextPlace(line: 99, column: 20), path: "buffers.cam"))
        #expect(
            try place { chain in
                try chain.add(CountingSource.self, "my-cam", options: #"{ "floor": 5 }"#)
                try chain.add(RecordingSink.self, "file")
                chain.request.buffers[0] = 5
            }?.description == "test.json:98:20: buffers[\"my-cam\"]")
        #expect(
            try place { chain in
                try chain.add(CountingSource.self, "cam")
                try chain.add(RecordingSink.self, "a", from: ["cam"])
                try chain.add(RecordingSink.self, "b", from: ["cam"], link: LinkRequest(queue: 0))
            }
                == FaultPlace(
                    file: "test.json", position: TextPlace(line: 33, column: 9), path: "stages[2].link.queue",
                    stage: "b"))
        #expect(
            try place { chain in
                try chain.add(CountingSource.self, "cam")
                try chain.add(RecordingSink.self, "file", link: LinkRequest(whenFull: .dropToKeyframe))
            }?.description == "test.json:24:9: stages[1].link.whenFull")
        #expect(
            try place { chain in
                try chain.add(CountingSource.self, "src")
                try chain.add(CopyTransform.self, "late", options: #"{ "delay": 6 }"#, from: ["src"])
                try chain.add(PairJoin.self, "pair", from: ["late", "src"], link: LinkRequest(queue: 2))
                try chain.add(RecordingSink.self, "file")
            }?.description == "test.json:33:9: stages[2].link.queue")
        #expect(
            try place { chain in
                try chain.add(CountingSource.self, "src")
                try chain.add(RecordingSink.self, "file")
                chain.request.stages[0].isUnread = true
            }?.description == "test.json:15:9: stages[0].unread")
        #expect(
            try place { chain in
                try chain.add(CountingSource.self, "a")
                try chain.add(CountingSource.self, "b", from: ["a"])
            }?.description == "test.json:21:9: stages[1].from")
    }
}
