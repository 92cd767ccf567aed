// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Plans against what runs: what is kept, what is made, what is refused.
@Suite struct ChangePlanTests {
    /// A live camera, a filter and a sink, each with a thread of its own but the sink.
    private func camera(_ options: String = "{}", spare: Int? = nil) throws -> ChainDraft {
        var draft = ChainDraft()
        draft.spare = spare
        try draft.add("plain-camera", "cam", options)
        try draft.add("probe", "mark")
        try draft.add("anything", "show")
        return draft
    }

    private func encoded(spare: Int? = nil) throws -> ChainDraft {
        var draft = ChainDraft()
        draft.spare = spare
        try draft.add("plain-camera", "cam")
        try draft.add("unit-encoder", "enc")
        try draft.add("unit-sink", "rec")
        return draft
    }

    // MARK: What stays

    @Test func keepsEveryStageOfAnEqualRequest() throws {
        let draft = try camera()
        let running = try draft.plan()
        #expect(running.changes == .init(made: ["cam", "mark", "show"]))
        let again = try draft.plan(against: running)
        #expect(again.changes == .init(kept: ["cam", "mark", "show"]))
        for stage in again.stages {
            #expect(stage.instance === running.stage(stage.id).instance)
            #expect(stage.context === running.stage(stage.id).context)
            #expect(stage.output == running.stage(stage.id).output)
        }
        #expect(again.services.stop === running.services.stop && again.services.events === running.services.events)
        #expect(again.layout === running.layout)
        #expect(again.plan.budget.pools == running.plan.budget.pools)
    }

    @Test func makesAnewOnlyWhatDiffers() throws {
        let running = try camera().plan()
        var draft = try camera()
        try draft.set("mark", #"{"sleepUs": 5}"#)
        let changed = try draft.plan(against: running)
        #expect(changed.changes == .init(kept: ["cam", "show"], made: ["mark"], gone: ["mark"]))
        #expect(changed.stage("mark").instance !== running.stage("mark").instance)
    }

    @Test func makesAnewWhatAnotherImageOfAPluginBrings() throws {
        let running = try camera().plan()
        var request = try camera().request
        request.stages[1].type = StageType(ProbeFilter.self)
        let changed = try ChainPlanner(request, clock: ManualClock(), running: RunningChain(running)).plan()
        #expect(changed.changes == .init(kept: ["cam", "show"], made: ["mark"], gone: ["mark"]))
    }

    @Test func givesLiveOptionsToSetInWhatRuns() throws {
        let running = try camera(#"{"brightness": 3}"#).plan()
        let brighter = try camera(#"{"brightness": 9}"#).plan(against: running)
        guard case .kept(let set) = brighter.stage("cam").origin else { return #expect(Bool(false), "made anew") }
        #expect(set.map(\.key) == ["brightness"] && set.first?.value.asInt == 9)
        // What is left out goes back to its default.
        let plain = try camera().plan(against: running)
        guard case .kept(let back) = plain.stage("cam").origin else { return #expect(Bool(false), "made anew") }
        #expect(back.map(\.key) == ["brightness"] && back.first?.value.asInt == 0)
        // One that is not live beside it: all of it anew.
        let wider = try camera(#"{"brightness": 9, "width": 64}"#).plan(against: running)
        #expect(wider.changes.made == ["cam"])
    }

    @Test func refusesAWrongValueBesideWhatRuns() throws {
        let running = try camera().plan()
        #expect(
            try camera(#"{"brightness": "dark"}"#).faults(against: running) == [
                "test.json:1:16: stages[0].brightness: expected a whole number, found a string. Write only a number, without quotes and without a unit."
            ])
    }

    // MARK: Formats

    @Test func refusesAnotherFormatForWhatRunsAndNamesTheOption() throws {
        let running = try encoded().plan()
        var draft = try encoded()
        try draft.set("cam", #"{"width": 32}"#)
        #expect(
            draft.faults(against: running) == [
                "test.json:1:2: stages[0].width: needs a restart: 'enc' is running and would get gray8 32x64 30 fps instead of gray8 64x64 30 fps. Restart the chain to make this change (if it came from a command, first write it into the chain file), or leave it out."
            ])
    }

    @Test func namesTheInputWhereAStageWasPutBetween() throws {
        let running = try camera().plan()
        var draft = ChainDraft()
        try draft.add("plain-camera", "cam")
        try draft.add("plain-camera", "other", #"{"width": 16}"#)
        try draft.add("anything", "rest", from: ["cam"])
        try draft.add("probe", "mark", from: ["other"])
        try draft.add("anything", "show")
        #expect(
            draft.faults(against: running) == [
                "test.json: stages[3].from: needs a restart: 'mark' is running and would get gray8 16x64 30 fps instead of gray8 64x64 30 fps. Restart the chain to make this change (if it came from a command, first write it into the chain file), or leave it out."
            ])
    }

    @Test func convertsForWhatRunsWhenAnotherPixelFormatComes() throws {
        let running = try camera().plan()
        let changed = try camera(#"{"format": "i420"}"#).plan(against: running)
        #expect(changed.changes == .init(kept: ["mark", "show"], made: ["cam", "mark-convert"], gone: ["cam"]))
        #expect(changed.stage("mark-convert").output == running.stage("cam").output)
        #expect(changed.plan.stages.first { $0.id == "mark-convert" }?.isInserted == true)
        // And back: the converter goes.
        let back = try camera().plan(against: changed)
        #expect(back.changes == .init(kept: ["mark", "show"], made: ["cam"], gone: ["cam", "mark-convert"]))
    }

    @Test func keepsAConverterThatStillFits() throws {
        var draft = ChainDraft()
        try draft.add("plain-camera", "cam", #"{"format": "i420"}"#)
        try draft.add("add-one", "write")
        try draft.add("anything", "show")
        let running = try draft.plan()
        #expect(running.changes.made == ["cam", "write-convert", "write", "show"])
        try draft.set("show", #"{"number": 1}"#)
        let changed = try draft.plan(against: running)
        #expect(changed.changes == .init(kept: ["cam", "write-convert", "write"], made: ["show"], gone: ["show"]))
        // The format of what it takes is another: another converter in its place.
        try draft.set("cam", #"{"format": "nv12"}"#)
        let other = try draft.plan(against: changed)
        #expect(other.changes.kept == ["write", "show"])
        #expect(other.changes.made == ["cam", "write-convert"] && other.changes.gone == ["cam", "write-convert"])
    }

    @Test func goesOnBehindAnEncoderThatIsReplaced() throws {
        let running = try encoded().plan()
        var draft = try encoded()
        try draft.set("enc", #"{"gop": 5}"#)
        let changed = try draft.plan(against: running)
        #expect(changed.changes == .init(kept: ["cam", "rec"], made: ["enc"], gone: ["enc"]))
        // The sink's wish for a keyframe goes to the encoder that runs now.
        let wish = try #require(changed.stage("rec").context.keyframeRequest)
        let (old, new) = (
            running.stage("enc").context.ownKeyframeRequest, changed.stage("enc").context.ownKeyframeRequest
        )
        wish.raise()
        #expect(old.take() && !new.take())
        changed.connectKeptStages()
        wish.raise()
        #expect(new.take() && !old.take())
    }

    @Test func comparesOfAccessUnitsWhatAReaderCannotChange() {
        let video = VideoFormat(.i420, width: 64, height: 64)
        let old = EncodedFormat(codec: .h264, parameterSets: [1], video: video, reorderDepth: 2, bitrateKbps: 100)
        var new = old
        (new.parameterSets, new.bitrateKbps, new.reorderDepth) = ([2], 200, 0)
        #expect(MediaFormat.encoded(new).isAsGood(as: .encoded(old)))
        #expect(!MediaFormat.encoded(old).isAsGood(as: .encoded(new)))
        new.video?.width = 32
        #expect(!MediaFormat.encoded(new).isAsGood(as: .encoded(old)))
        #expect(!MediaFormat.video(video).isAsGood(as: .encoded(old)))
    }

    @Test func refusesOtherSoundForASinkThatRuns() throws {
        let running = try camera(#"{"sound": true}"#).plan()
        #expect(
            try camera().faults(against: running) == [
                "test.json: stages[0].sound: needs a restart: 'show' is running and would get another sound stream. Restart the chain to make this change (if it came from a command, first write it into the chain file), or leave it out."
            ])
    }

    @Test func refusesToExchangeALiveSourceForOneThatIsNot() throws {
        var draft = try camera()
        try draft.add("plain-camera", "second")
        try draft.add("anything", "see")
        let running = try draft.plan()
        // The chain stays live by the first.
        try draft.set("second", #"{"live": false}"#)
        #expect(
            draft.faults(against: running) == [
                "test.json: stages[3]: needs a restart: 'second' is a live source and would no longer be live. Restart the chain to make this change (if it came from a command, first write it into the chain file), or leave it out."
            ])
    }

    @Test func refusesToBecomeLive() throws {
        let running = try camera(#"{"live": false}"#).plan()
        var draft = try camera(#"{"live": false}"#)
        try draft.add("plain-camera", "second")
        try draft.add("anything", "see")
        #expect(
            draft.faults(against: running).first
                == "test.json: stages[0]: needs a restart: 'cam' was started in a chain without a live source, and now there is one. Restart the chain to make this change (if it came from a command, first write it into the chain file), or leave it out."
        )
    }

    @Test func refusesMetadataThatNoFrameHasRoomFor() throws {
        let running = try camera().plan()
        var draft = try camera()
        try draft.add("labeller", "label", from: ["mark"])
        try draft.add("anything", "see")
        #expect(
            draft.faults(against: running) == [
                "test.json: stages[3].use: needs a restart: 'label' (labeller) needs metadata 'label', for which the frames of the running chain have no room. Restart the chain to make this change (if it came from a command, first write it into the chain file), or leave it out."
            ])
    }

    // MARK: Buffers

    @Test func hasBuffersToSpareForABranchWhereverItIsAttached() throws {
        for stage in ["cam", "mark"] {
            let running = try camera().plan()
            #expect(running.pool("cam")?.spare == 3)
            var draft = try camera()
            try draft.add("anything", "second", from: [stage])
            let changed = try draft.plan(against: running)
            #expect(changed.changes == .init(kept: ["cam", "mark", "show"], made: ["second"]))
            #expect(changed.pool("cam")?.size == running.pool("cam")?.size)
            #expect(changed.pool("cam")?.spare == 0)
            // What ran inline goes on inline, beside the branch and without it.
            #expect(changed.link("mark", "show")?.settings.capacity == 0)
            let back = try camera().plan(against: changed)
            #expect(back.changes == .init(kept: ["cam", "mark", "show"], gone: ["second"]))
            #expect(back.link("mark", "show")?.settings.capacity == 0)
        }
    }

    @Test func refusesABranchThatNeedsMoreThanThereIsToSpare() throws {
        let running = try camera(spare: 1).plan()
        #expect(running.pool("cam")?.spare == 1)
        var draft = try camera(spare: 1)
        try draft.add("anything", "second", from: ["cam"])
        #expect(
            draft.faults(against: running) == [
                "test.json: stages[3]: 'second' needs 2 buffers more than pool 'cam' has to spare. Give 'second' copies, which use no buffer of 'cam' (\"link\": { \"copy\": true }, or `--copy` of `framehost ctl`); or shorten its queues, or restart the chain with a larger \"spare\"."
            ])
        // A shorter queue, and one more held by nobody.
        draft = try camera(spare: 2)
        try draft.add("anything", "second", from: ["cam"], link: LinkRequest(queue: 1))
        #expect(try draft.plan(against: camera(spare: 2).plan()).pool("cam")?.spare == 0)
    }

    @Test func countsBuffersThatAHangingStageKeepsForGoodAsMissing() throws {
        let planned = try camera(spare: 3).plan()
        var running = RunningChain(planned)
        running.pools[.init(stage: "cam")]?.size -= 2
        var draft = try camera(spare: 3)
        try draft.add("anything", "second", from: ["cam"])
        #expect(throws: FrameHostErrors.self) {
            try ChainPlanner(draft.request, clock: ManualClock(), running: running).plan()
        }
    }

    @Test func sparesNothingInAChainThatIsNotLive() throws {
        #expect(try camera(#"{"live": false}"#).plan().pool("cam")?.spare == 0)
        #expect(try encoded(spare: 0).plan().pool("cam")?.spare == 0)
    }

    @Test func leavesASizeAloneThatAPersonWrote() throws {
        var draft = try camera(spare: 5)
        draft.buffers = ["cam": 9]
        #expect(try draft.plan().pool("cam")?.size == 9)
    }

    @Test func refusesOtherSizesForPoolsThatRun() throws {
        let running = try camera().plan()
        var draft = try camera(spare: 9)
        draft.buffers = ["cam": 40]
        #expect(
            draft.faults(against: running) == [
                "test.json: buffers.cam: needs a restart: the size of the pool of 'cam' would change. Restart the chain to make this change (if it came from a command, first write it into the chain file), or leave it out.",
                "test.json: spare: needs a restart: the sizes of all pools would change. Restart the chain to make this change (if it came from a command, first write it into the chain file), or leave it out.",
            ])
    }

    @Test func makesAPoolForCopiesWhereAWriterBeginsToShare() throws {
        var draft = ChainDraft()
        try draft.add("plain-camera", "cam")
        try draft.add("add-one", "write")
        try draft.add("anything", "show")
        let running = try draft.plan()
        #expect(running.pool("write", copies: true) == nil)
        try draft.add("anything", "second", from: ["cam"])
        let changed = try draft.plan(against: running)
        #expect(changed.changes.made == ["second"])
        #expect(changed.pool("write", copies: true) != nil)
    }

    @Test func asksOnlyForTheMemoryOfWhatIsNew() throws {
        let draft = try encoded()
        let running = try draft.plan()
        var request = draft.request
        request.memory = AvailableMemory(bytes: 1 << 20)
        #expect(
            try ChainPlanner(request, clock: ManualClock(), running: RunningChain(running)).plan().changes.made == [])
        #expect(throws: FrameHostErrors.self) { try ChainPlanner(request, clock: ManualClock()).plan() }
    }

    @Test func asksForTheMemoryOfSpareBuffersWhenTheyAreUsedFirst() throws {
        let planned = try camera(spare: 4).plan()
        #expect(planned.pool("cam").map { $0.size - $0.need } == 4)
        var draft = try camera(spare: 4)
        try draft.add("anything", "second", from: ["cam"])
        func faults(_ running: RunningChain, _ bytes: Int) -> [String] {
            var request = draft.request
            request.memory = AvailableMemory(bytes: bytes)
            do { _ = try ChainPlanner(request, clock: ManualClock(), running: running).plan() } catch {
                return (error as? FrameHostErrors)?.errors.map(\.description) ?? ["\(error)"]
            }
            return []
        }
        #expect(
            faults(RunningChain(planned), 3 * 4096 - 1) == [
                "test.json: the change needs another 12288 bytes of memory, and this machine has only 12287 bytes available; the largest part is 0.1 MiB, 3 buffers of 64x64 gray8 at 'cam'. Use a smaller picture, shorter queues (\"link\": { \"queue\", \"megabytes\" }), a smaller \"spare\" or fewer \"buffers\", or run the chain on a machine with more memory."
            ])
        #expect(faults(RunningChain(planned), 3 * 4096) == [])
        // A change has used two of them before.
        var used = RunningChain(planned)
        used.pools[.init(stage: "cam")]?.touched += 2
        #expect(faults(used, 4096 - 1).count == 1)
        #expect(faults(used, 4096) == [])
        used.pools[.init(stage: "cam")]?.touched += 2
        #expect(faults(used, 0) == [])
    }

    // MARK: Access units

    @Test func hasRoomForOneLinkMoreOfAccessUnits() throws {
        let tight = try encoded(spare: 0).plan()
        let running = try encoded().plan()
        let (least, slab) = (try #require(tight.slab("enc")), try #require(running.slab("enc")))
        #expect(slab.unitCount == least.unitCount + 514 && slab.byteCount == least.byteCount + 16_000_000)
        var draft = try encoded()
        try draft.add("unit-sink", "second", from: ["enc"])
        let changed = try draft.plan(against: running)
        #expect(changed.slab("enc")?.unitCount == slab.unitCount && changed.slab("enc")?.byteCount == slab.byteCount)
        #expect(changed.link("enc", "second")?.settings.mostBytes == 16_000_000)
        // It stays so once it runs.
        #expect(try draft.plan(against: changed).link("enc", "second")?.settings.mostBytes == 16_000_000)
        try draft.add("unit-sink", "third", from: ["enc"])
        #expect(
            draft.faults(against: changed) == [
                "test.json: stages[4]: 'third' needs more memory for access units than 'enc' has to spare; the shortfall is room for 514 access units and 15.2 MiB. Give 'third' copies (\"link\": { \"copy\": true }, or `--copy` of `framehost ctl`), shorten its queue (\"queue\", \"megabytes\"), or restart the chain with 'third' in its file."
            ])
    }

    // MARK: Links

    /// A queue of pictures is none for access units, though both ends keep their ids and the sink its plugin.
    @Test func makesAnotherQueueWhereTheMediaChange() throws {
        var draft = ChainDraft()
        try draft.add("plain-camera", "cam")
        try draft.add("probe", "middle")
        try draft.add("omnivore", "end", link: LinkRequest(queue: 5))
        let running = try draft.plan()
        #expect(running.link("middle", "end")?.settings.mostBytes == nil)
        draft.use("unit-encoder", for: "middle")
        try draft.set("end", #"{"number": 1}"#)
        let changed = try draft.plan(against: running)
        #expect(changed.changes == .init(kept: ["cam"], made: ["middle", "end"], gone: ["end", "middle"]))
        #expect(changed.link("middle", "end")?.settings.mostBytes == 64_000_000)
    }

    @Test(arguments: [LinkRequest(queue: 4), LinkRequest(queue: 0), LinkRequest(whenFull: .latest)])
    func refusesAnotherQueueThanTheOneThatRuns(link: LinkRequest) throws {
        var draft = try camera()
        let running = try draft.plan()
        draft = ChainDraft()
        try draft.add("plain-camera", "cam")
        try draft.add("probe", "mark", link: link)
        try draft.add("anything", "show")
        #expect(throws: FrameHostErrors.self) { try draft.plan(against: running) }
        do {
            _ = try draft.plan(against: running)
        } catch let faults as FrameHostErrors {
            #expect(
                faults.errors.map(\.what)
                    == [
                        "needs a restart: the link from 'cam' to 'mark' would change: now it has \"queue\": 2 and \"whenFull\": \"wait\""
                    ]
            )
            #expect(faults.errors.first?.place.path == "stages[1].link")
        }
    }

    @Test func takesTheQueueThatRunsForTheOneThatIsWritten() throws {
        var draft = try camera()
        let running = try draft.plan()
        draft = ChainDraft()
        try draft.add("plain-camera", "cam")
        try draft.add("probe", "mark", link: LinkRequest(queue: 2, whenFull: .wait))
        try draft.add("anything", "show")
        let changed = try draft.plan(against: running)
        #expect(changed.changes.made == [] && changed.link("cam", "mark")?.settings.capacity == 2)
    }

    @Test func refusesAnotherWayToMatchForAJoinThatRuns() throws {
        var draft = ChainDraft()
        try draft.add("plain-camera", "a")
        try draft.add("plain-camera", "b")
        try draft.add("pair", "pair", from: ["a", "b"])
        try draft.add("anything", "show")
        let running = try draft.plan()
        draft.stages[2].join = JoinRequest(hold: true)
        do {
            _ = try draft.plan(against: running)
            Issue.record("it was planned")
        } catch let faults as FrameHostErrors {
            #expect(faults.errors.map(\.what) == ["needs a restart: the 'join' settings of 'pair' would change"])
            #expect(faults.errors.first?.place.path == "stages[2].join")
        }
    }

    @Test func keepsWhatWasAskedOfTheOtherLinksOfAJoinWhenOneIsConverted() throws {
        var draft = ChainDraft()
        try draft.add("plain-camera", "a", #"{"format": "i420"}"#)
        try draft.add("plain-camera", "b")
        try draft.add("pair", "pair", from: ["a", "b"], link: LinkRequest(queue: 7))
        try draft.add("anything", "show")
        let planned = try draft.plan()
        #expect(planned.link("a", "pair-convert")?.settings.capacity == 7)
        #expect(planned.link("pair-convert", "pair")?.settings.capacity == 2)
        #expect(planned.link("b", "pair")?.settings.capacity == 7)
    }
}
