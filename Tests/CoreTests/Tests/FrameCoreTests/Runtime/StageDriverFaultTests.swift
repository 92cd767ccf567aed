// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// What fails a run fails the driver's call.
@Suite struct StageDriverFaultTests {
    private static let grey = MediaFormat.video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(30)))

    private static func fault(_ body: () throws -> Void) -> String? {
        do {
            try body()
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test func failsWhereAnItemIsForgotten() throws {
        let driver = try StageDriver(CopyTransform.self, options: #"{"swallow": 2}"#, input: Self.grey)
        for _ in 0..<2 { try driver.send(driver.makeFrame()) }
        let fault = Self.fault { try driver.send(driver.makeFrame()) }
        #expect(
            fault
                == "copy (copy): the stage lost 1 item: it took 3 and made 0, but accounts for 2 (emitted, ended, dropped or held)."
                + " Emit or drop each item exactly once, and count in 'held' the items that are emitted later.")
    }

    @Test func failsWhereAnItemIsAnsweredTwice() throws {
        let driver = try StageDriver(CopyTransform.self, options: #"{"double": 1}"#, input: Self.grey)
        try driver.send(driver.makeFrame())
        let fault = Self.fault { try driver.send(driver.makeFrame()) }
        #expect(fault?.contains("the stage gave 1 item too many") ?? false, "\(fault ?? "nothing")")
    }

    @Test func failsWhereHeldIsFalse() throws {
        let driver = try StageDriver(LyingTransform.self, options: #"{"held": 1}"#, input: Self.grey)
        let fault = Self.fault { try driver.send(driver.makeFrame()) }
        #expect(
            fault?.contains(
                "the stage gave 1 item too many: it took 1 and made 0, but accounts for 2 (emitted, ended, dropped or held)"
            )
                ?? false, "\(fault ?? "nothing")")
    }

    @Test func failsWhereItemsAreHeldAfterTheDrain() throws {
        let driver = try StageDriver(LyingTransform.self, options: #"{"keep": true}"#, input: Self.grey)
        try driver.send(driver.makeFrame())
        #expect(
            Self.fault { try driver.drain() }
                == "lying (lying): 1 item is still held after the drain. Emit or drop in drain(_:) every item that the stage holds."
        )
    }

    @Test func failsWhereMoreIsKeptThanDeclared() throws {
        let driver = try StageDriver(ProbeFilter.self, options: #"{"keep": 3, "declared": 1}"#, input: Self.grey)
        try driver.send(driver.makeFrame())
        #expect(
            Self.fault { try driver.send(driver.makeFrame()) }
                == "probe (probe) keeps 2 buffers after its call but declares a 'hold' of 1."
                + " The chain may run out of buffers. In the plugin, raise 'hold' or release buffers earlier; if it is not yours, tell its author."
        )
    }

    @Test func failsWhereTimesAreMissing() throws {
        let driver = try StageDriver(LyingTransform.self, options: #"{"timeless": true}"#, input: Self.grey)
        try driver.send(driver.makeFrame())
        #expect(
            Self.fault { try driver.send(driver.makeFrame()) }
                == "lying (lying): a frame was given a time that is not later than that of the frame before."
                + " In the plugin, call copyProperties(from:) on each new frame before emitting it, or set its pts; if the plugin is not yours, tell its author."
        )
        _ = driver.takeFrame()
    }

    @Test func takesAStageThatKeepsItsPromises() throws {
        let driver = try StageDriver(CopyTransform.self, options: #"{"delay": 2}"#, input: Self.grey)
        for _ in 0..<5 { try driver.send(driver.makeFrame()) }
        try driver.drain()
        try driver.stop()
        var count = 0
        while let frame = driver.takeFrame() {
            #expect(frame.sequenceNumber == UInt64(count))
            count += 1
        }
        #expect(count == 5)
    }

    @Test func checksJoinsToo() throws {
        let driver = try StageDriver(PairJoin.self, inputs: [Self.grey, Self.grey])
        driver.put(try driver.makeFrame(input: 0), at: 0)
        driver.put(try driver.makeFrame(input: 1), at: 1)
        try driver.merge()
        let second = try driver.makeFrame(input: 1)
        driver.put(second, at: 1)
        try driver.merge()
        // PairJoin says nothing where nothing is there.
        let forgetful = try StageDriver(ForgetfulJoin.self, inputs: [Self.grey, Self.grey])
        forgetful.put(try forgetful.makeFrame(input: 1), at: 1)
        let fault = Self.fault { try forgetful.merge() }
        #expect(fault?.contains("the stage lost 1") ?? false, "\(fault ?? "nothing")")
    }

    /// Alone in a test nobody else holds the frame; in a chain with a fork somebody does.
    @Test func endsWhereAStageWritesWithoutSayingSo() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let driver = try StageDriver(SilentWriter.self, input: Self.grey)
            try driver.send(driver.makeFrame())
        }
        let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(said.contains("Declare 'access: .modify' in its StageInfo"), "\(said)")
    }

    /// As the planner does: no input where one is needed is a sentence, not a trap.
    @Test func saysThatAnInputIsMissing() {
        #expect(
            Self.fault { _ = try StageDriver(CopyTransform.self) }
                == "the stage needs an input, but none is given. Give the StageDriver the format of the input: its argument 'input' or 'inputs'."
        )
        #expect(
            Self.fault { _ = try StageDriver(ProbeFilter.self) }
                == "the stage needs an input, but none is given. Give the StageDriver the format of the input: its argument 'input' or 'inputs'."
        )
    }
}

/// Breaks one promise, as told.
final class LyingTransform: Transform {
    static let info = StageInfo(
        id: "lying", summary: "Lies.", input: .video(.gray8), output: .video(.gray8), hold: 1, delay: 1)

    struct Options: StageOptions {
        @Option(help: "Said to be held.") var held = 0
        @Option(help: "Keeps what it gets, also at the drain.") var keep = false
        @Option(help: "Gives frames without a time.") var timeless = false
    }

    var options: Options
    private var kept: Frame?
    init(options: Options, context: StageContext) { self.options = options }
    var held: Int { options.held + (kept == nil ? 0 : 1) }
    func negotiate(_ input: MediaFormat) throws -> MediaFormat { input }

    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input else { return }
        if options.keep {
            kept = consume frame
            return
        }
        guard let made = try output.makeFrame() else { return }
        if !options.timeless { made.copyProperties(from: frame) }
        try output.emit(made)
    }

    func stop() { kept = nil }
}

/// Writes into what it gets, and does not declare it.
final class SilentWriter: Filter {
    static let info = StageInfo(
        id: "silent-writer", summary: "Writes.", input: .video(.gray8), output: .sameAsInput)

    struct Options: StageOptions {}

    var options: Options
    init(options: Options, context: StageContext) { self.options = options }

    func process(_ frame: inout Frame) -> Verdict {
        frame.withMutablePlane(0) { $0.row(0)[0] = 1 }
        return .forward
    }
}

/// Forgets what has no partner.
final class ForgetfulJoin: Join {
    static let info = StageInfo(id: "forgetful", summary: "Forgets.", input: .video(.gray8), output: .sameAsInput)
    typealias Options = NoOptions
    var options: NoOptions
    init(options: NoOptions, context: StageContext) { self.options = options }
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat { inputs[0] }
    func merge(_ inputs: JoinInputs, _ output: Output) throws {
        guard case .frame(let first)? = inputs.take(0) else { return }
        try output.emit(first)
    }
}
