// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Testing

@testable import ALSASource

/// What happens to a card. Used by one thread at a time.
private final class CardScript: @unchecked Sendable {
    enum Playing { case sound, silence, suspended, overruns }

    @TaskLocal static var current = CardScript()

    let clock = ManualClock(at: 50_000_000_000)
    /// What opening it meets, and starting it.
    var opening: CardFault?
    var starting: CardFault?
    var playing = Playing.sound
    /// What the next calls meet, before anything else.
    var faults: [Int32] = []
    /// When it was opened, milliseconds.
    var openings: [Int64] = []
}

private final class ScriptedCard: SoundCard {
    let name: String
    let format = CardFormat(samples: .s16, rate: 48_000, channels: 2, period: 480, buffer: 24_000)
    var title: String { name }
    var stableName: String { name }
    private let script: CardScript

    init(_ name: String, _ script: CardScript) { (self.name, self.script) = (name, script) }

    func start() throws(CardFault) { if let fault = script.starting { throw fault } }

    func wait(milliseconds: Int32) throws(CardFault) -> Bool {
        if !script.faults.isEmpty {
            throw CardFault(call: "snd_pcm_avail_update", errno: script.faults.removeFirst())
        }
        switch script.playing {
        case .sound:
            script.clock.advance(to: script.clock.now() + 10_000_000)
            return true
        case .silence:
            script.clock.advance(to: script.clock.now() + Int64(milliseconds) * 1_000_000)
            return false
        case .suspended: throw CardFault(call: "snd_pcm_avail_update", errno: ESTRPIPE)
        case .overruns: throw CardFault(call: "snd_pcm_avail_update", errno: EPIPE)
        }
    }

    func look() -> CardStatus { CardStatus(stamp: script.clock.now(), available: 480) }

    func read(_ bytes: UnsafeMutableRawPointer, frames: Int) -> Int {
        memset(bytes, 0x11, frames * format.frameBytes)
        return frames
    }

    func resume() -> Bool { script.playing != .suspended }
    func close() {}
}

private final class ScriptedMicrophone: Source {
    static let info = ALSASource.info
    let source: ALSASource
    var options: ALSASourceOptions

    init(options: ALSASourceOptions, context: StageContext) {
        self.options = options
        let script = CardScript.current
        source = ALSASource(options: options, context: context) { name, _ in
            script.openings.append(script.clock.now() / 1_000_000)
            if let fault = script.opening { throw fault }
            return ScriptedCard(name, script)
        }
    }

    var demand: StageDemand { source.demand }
    func negotiate() throws -> MediaFormat { try source.negotiate() }
    func start() throws { try source.start() }
    func produce(_ output: Output) throws -> SourceProgress { try source.produce(output) }
    func stop() { source.stop() }
}

/// All that is said and given of a card that is lost, away and back: every event in every state, with its text, its
/// details and its time.
@Suite struct CardLossTests {
    private let script = CardScript()

    private enum Given: Equatable { case nothing, sound, silence, both }

    /// What happens to the card, and what comes of it within some time.
    private struct Row {
        let line: Int
        let milliseconds: Int64
        let happens: (CardScript) -> Void
        let given: Given
        let recovering: String?
        let said: [String]

        init(
            _ milliseconds: Int64, _ given: Given, recovering: String? = nil, said: [String] = [], line: Int = #line,
            happens: @escaping (CardScript) -> Void = { _ in }
        ) {
            (self.line, self.milliseconds, self.happens) = (line, milliseconds, happens)
            (self.given, self.recovering, self.said) = (given, recovering, said)
        }
    }

    private func driver(_ more: String = "") throws -> StageDriver<ScriptedMicrophone> {
        let driver = try CardScript.$current.withValue(script) {
            try StageDriver(ScriptedMicrophone.self, options: #"{ "device": "mic" \#(more) }"#, clock: script.clock)
        }
        // Notes of the plan.
        _ = driver.takeEvents()
        return driver
    }

    private static func shown(_ event: Event) -> String {
        "\(event.level) \(event.name): \(event.text) \(event.details.text())"
    }

    private func play(_ driver: StageDriver<ScriptedMicrophone>, _ rows: [Row]) throws {
        for row in rows {
            row.happens(script)
            let end = script.clock.now() + row.milliseconds * 1_000_000
            var (sound, silence) = (0, 0)
            // What was read is given with the next call.
            while script.clock.now() < end || driver.stage.source.session?.pending ?? 0 > 0 {
                _ = try driver.produce()
                while let block = driver.takeAudioBlock() {
                    let isSilent = block.withSamples { $0.allSatisfy { $0 == 0 } }
                    if isSilent { silence += 1 } else { sound += 1 }
                }
            }
            let said = driver.takeEvents().map(Self.shown)
            let given: Given = sound > 0 ? (silence > 0 ? .both : .sound) : silence > 0 ? .silence : .nothing
            #expect(said == row.said, "line \(row.line)")
            #expect(given == row.given, "line \(row.line)")
            #expect(driver.context.recovering == row.recovering, "line \(row.line)")
            let state = driver.stage.source.figures.json["state"]?.asString
            #expect((state == "streaming") == (row.recovering == nil), "line \(row.line)")
        }
    }

    private func losses(_ driver: StageDriver<ScriptedMicrophone>) -> Int {
        driver.stage.source.figures.losses.load(ordering: .relaxed)
    }

    private static let gone = CardFault(call: "snd_pcm_open", errno: ENODEV)
    private static let busy = CardFault(call: "snd_pcm_open", errno: EBUSY)
    private static let forbidden = CardFault(call: "snd_pcm_open", errno: EACCES)

    private static func lost(_ reason: String) -> String {
        #"warning device-lost: The device is lost: \#(reason). It is opened again when it is back. {"reason":"\#(reason)"}"#
    }

    private static func isBack(_ milliseconds: Int) -> String {
        #"info device-back: The device 'mic' now gives sound, after \#(milliseconds) ms without any. {"device":"mic","awayMs":\#(milliseconds)}"#
    }

    private static let isPulled = "snd_pcm_avail_update: No such device (ENODEV)"
    private static let isInUse =
        "warning device-refused: The device cannot be used yet: 'mic' is in use (snd_pcm_open: Device or resource busy (EBUSY)). The stage keeps trying. End the program that uses it, or use a device that several programs can share, such as 'default'. {}"
    private static let isForbidden =
        "warning device-refused: The device cannot be used yet: this user may not open 'mic' (snd_pcm_open: Permission denied (EACCES)). The stage keeps trying. Join the group that may open the sound cards: `sudo usermod -aG audio $USER`. Then log in again. {}"

    @Test func isLostLookedForRefusedAndBack() throws {
        let driver = try driver()
        let recovering = "the device is lost: \(Self.isPulled)"
        try play(
            driver,
            [
                Row(500, .sound),
                Row(600, .silence, recovering: recovering, said: [Self.lost(Self.isPulled)]) {
                    $0.faults = [ENODEV]
                    $0.opening = Self.gone
                },
                // It is looked for after 100, 300 and 700 ms, and then each second.
                Row(400, .both, said: [Self.isBack(710)]) { $0.opening = nil },
                // There, and in use.
                Row(1000, .silence, recovering: recovering, said: [Self.lost(Self.isPulled), Self.isInUse]) {
                    $0.faults = [ENODEV]
                    $0.opening = Self.busy
                },
                Row(2000, .silence, recovering: recovering),
                // For another reason.
                Row(1500, .silence, recovering: recovering, said: [Self.isForbidden]) { $0.opening = Self.forbidden },
                Row(1900, .silence, recovering: recovering),
                Row(1000, .both, said: [Self.isBack(6510)]) { $0.opening = nil },
                // Said anew for another loss.
                Row(1000, .silence, recovering: recovering, said: [Self.lost(Self.isPulled), Self.isInUse]) {
                    $0.faults = [ENODEV]
                    $0.opening = Self.busy
                },
                Row(1000, .both, said: [Self.isBack(1510)]) { $0.opening = nil },
            ])
        #expect(losses(driver) == 3)
        try driver.stop()
    }

    /// It is back with its first sound. Until then it is looked for ever less often, and nothing more is said.
    @Test func isLostOnceWhereItGivesNothing() throws {
        let driver = try driver()
        let silent = "no sound for 1100 ms"
        try play(
            driver,
            [
                Row(500, .sound),
                Row(5000, .silence, recovering: "the device is lost: \(silent)", said: [Self.lost(silent)]) {
                    $0.playing = .silence
                    $0.openings = []
                },
                Row(1000, .silence, recovering: "the device is lost: \(silent)", said: [Self.isInUse]) {
                    $0.opening = Self.busy
                },
                Row(2000, .both, said: [Self.isBack(5810)]) {
                    $0.opening = nil
                    $0.playing = .sound
                },
            ])
        #expect(script.openings.map { $0 - script.openings[0] } == [0, 1300, 2800, 4700, 5700])
        #expect(losses(driver) == 1)
        try driver.stop()
    }

    /// Overruns and suspensions are no losses. Of a card that is away they are not said.
    @Test func isNotLostByAnOverrunOrASuspension() throws {
        let driver = try driver()
        let recovering = "the device is lost: \(Self.isPulled)"
        try play(
            driver,
            [
                Row(500, .sound),
                Row(
                    1000, .both,
                    said: [
                        #"warning overrun: The card's buffer has overrun: less than 1 ms of sound is missing and replaced by silence. {"missingMs":0,"overruns":1}"#
                    ]
                ) { $0.faults = [EPIPE] },
                Row(400, .nothing) { $0.playing = .suspended },
                Row(
                    1000, .both,
                    said: [
                        #"warning overrun: The system had suspended the card: 400 ms of sound is missing and replaced by silence. {"missingMs":400,"overruns":1}"#
                    ]
                ) { $0.playing = .sound },
                Row(250, .silence, recovering: recovering, said: [Self.lost(Self.isPulled)]) {
                    $0.faults = [ENODEV]
                    $0.opening = Self.gone
                },
                Row(1000, .both, said: [Self.isBack(320)]) {
                    $0.opening = nil
                    $0.faults = [EPIPE, ESTRPIPE, EPIPE]
                },
            ])
        #expect(losses(driver) == 1)
        #expect(driver.stage.source.figures.overruns.load(ordering: .relaxed) == 3)
        try driver.stop()
    }

    @Test func isLostByEndlessOverrunsAndByAStartThatFails() throws {
        let driver = try driver()
        let overruns = "no sound for 1010 ms, only overruns of the card's buffer"
        let start = "snd_pcm_start: Input/output error (EIO)"
        try play(
            driver,
            [
                Row(500, .sound),
                Row(1090, .silence, recovering: "the device is lost: \(overruns)", said: [Self.lost(overruns)]) {
                    $0.playing = .overruns
                },
                Row(1000, .both, said: [Self.isBack(110)]) { $0.playing = .sound },
                Row(50, .silence, recovering: "the device is lost: \(start)", said: [Self.lost(start)]) {
                    $0.faults = [EPIPE]
                    $0.starting = CardFault(call: "snd_pcm_start", errno: EIO)
                },
                Row(1000, .both, said: [Self.isBack(110)]) { $0.starting = nil },
            ])
        try driver.stop()
    }

    @Test func isThereForTheFirstTime() throws {
        script.opening = Self.gone
        let missing = "there is no device 'mic' for capture"
        let driver = try driver(#", "ifMissing": "wait""#)
        #expect(driver.context.recovering == missing)
        try play(
            driver,
            [
                Row(500, .silence, recovering: missing),
                Row(500, .silence, recovering: missing, said: [Self.isInUse]) { $0.opening = Self.busy },
                // There, and silent: it was never there.
                Row(2000, .silence, recovering: missing) {
                    $0.opening = nil
                    $0.playing = .silence
                },
                Row(2000, .both, said: [Self.isBack(3610)]) { $0.playing = .sound },
            ])
        #expect(losses(driver) == 0)
        try driver.stop()
    }

    @Test func goesBeforeItsStart() throws {
        script.starting = CardFault(call: "snd_pcm_start", errno: ENODEV)
        let driver = try driver(#", "ifMissing": "wait", "whileLost": "stop""#)
        let missing = "there is no device 'mic' for capture"
        try play(
            driver,
            [
                Row(250, .silence, recovering: missing),
                Row(500, .both, said: [Self.isBack(310)]) { $0.starting = nil },
            ])
        #expect(losses(driver) == 0)
        try driver.stop()
    }

    @Test func endsTheStageWhereNothingIsGiven() throws {
        let driver = try driver(#", "whileLost": "stop""#)
        try play(driver, [Row(500, .sound)])
        script.faults = [ENODEV]
        let fault = #expect(throws: FrameHostError.self) { for _ in 0..<3 { _ = try driver.produce() } }
        #expect(
            fault?.description
                == "alsa-source (alsa-source): frame 50: the device 'mic' is lost: snd_pcm_avail_update: No such device (ENODEV). Set \"whileLost\": \"silence\" to give silence until the device is back."
        )
        #expect(driver.takeEvents().isEmpty && driver.context.recovering == nil)
        #expect(driver.stage.source.figures.json["state"]?.asString == "recovering")
        #expect(losses(driver) == 1)
        try driver.stop()
    }
}
