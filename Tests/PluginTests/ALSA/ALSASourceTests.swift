// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Testing

@testable import ALSASource

/// The microphone of `fake-microphone.c`, built once, under several names in a configuration of its own.
private enum FakeMicrophone {
    /// The folder with library, configuration and the files that unplug or stop a microphone; nil where there is no
    /// compiler or no header.
    static let folder: String? = {
        var template = Array("/tmp/framehost-alsa-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { return nil }
        let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let source = #filePath.split(separator: "/").dropLast().joined(separator: "/")
        let command =
            "cc -O1 -shared -fPIC -DPIC -o '\(folder)/mic.so' '/\(source)/fake-microphone.c' -lasound -lm 2>'\(folder)/cc.txt'"
        guard system(command) == 0 else { return nil }
        func pcm(_ name: String, _ rest: String = "") -> String {
            "pcm.\(name) { type fakemic gone \"\(folder)/\(name).gone\" still \"\(folder)/\(name).still\" \(rest) hint { show on description \"Test microphone \(name)\" } }\n"
        }
        let text =
            "</usr/share/alsa/alsa.conf>\npcm_type.fakemic { lib \"\(folder)/mic.so\" }\n" + pcm("mic_exact")
            + pcm("mic_fast", "ppm 300.0") + pcm("mic_stall") + pcm("mic_pull") + pcm("mic_quiet") + pcm("mic_late")
            + pcm("mic_chain")
            + "pcm.mic_plug { type plug slave.pcm mic_exact }\n"
        guard let file = fopen("\(folder)/asound.conf", "w") else { return nil }
        fputs(text, file)
        fclose(file)
        setenv("ALSA_CONFIG_PATH", "\(folder)/asound.conf", 1)
        atexit { FakeMicrophone.remove() }
        return folder
    }()

    static var isBuilt: Bool { folder != nil || getenv("CI").map { String(cString: $0) } == "true" }

    static func remove() {
        guard let folder else { return }
        for file in ["mic.so", "cc.txt", "asound.conf"] { unlink("\(folder)/\(file)") }
        rmdir(folder)
    }

    /// `gone` or `still`.
    static func set(_ state: String, of name: String, _ isSet: Bool) throws {
        let path = "\(try #require(folder))/\(name).\(state)"
        if isSet { try #require(creat(path, 0o600) >= 0) } else { unlink(path) }
    }
}

/// What came out of a source, with the checks that hold for each block.
private final class SoundListener {
    /// How far behind a busy machine may be: what the card keeps, and a little; nanoseconds.
    static let behind: Int64 = 700_000_000

    let driver: StageDriver<ALSASource>
    private(set) var samples: [Float] = []
    private(set) var origin: Int64?
    private(set) var events: [Event] = []
    private(set) var gaps = 0
    /// Gaps of more than five seconds, which are gaps in the times too.
    private(set) var holes = 0
    /// Frames since the last block of silence, or the last gap.
    private(set) var sounding = 0
    let rate: Int
    let channels: Int

    init(_ device: String, _ more: String = "", rate: Int = 48_000, channels: Int = 2) throws {
        (self.rate, self.channels) = (rate, channels)
        driver = try StageDriver(
            ALSASource.self,
            options: "{ \"device\": \"\(device)\", \"sampleRate\": \(rate), \"channels\": \(channels)\(more) }",
            clock: ChainClock())
    }

    var now: Int64 { driver.context.clock.now() }

    /// Runs the source for some time, or until something is so.
    func listen(seconds: Double, until isEnough: () -> Bool = { false }) throws {
        let end = now + Int64(seconds * 1e9)
        while now < end, !isEnough() {
            _ = try driver.produce()
            events += driver.takeEvents()
            while let block = driver.takeAudioBlock() { take(block) }
        }
    }

    private func take(_ block: consuming AudioBlock) {
        let frames = Int64(samples.count / channels)
        var first = origin ?? block.pts.nanoseconds
        let hole = block.pts.nanoseconds - first - frames * 1_000_000_000 / Int64(rate)
        if block.isDiscontinuity, hole > 5_000_000_000 {
            first += hole
            holes += 1
        }
        origin = first
        // The output is exact: each block lies where the frames before it end.
        #expect(abs(block.pts.nanoseconds - first - frames * 1_000_000_000 / Int64(rate)) <= 1)
        #expect(block.capturedAt == block.pts.nanoseconds)
        #expect(block.channelCount == channels)
        #expect(abs(block.duration.nanoseconds - Int64(block.sampleCount) * 1_000_000_000 / Int64(rate)) <= 1)
        // Nothing is given before it was heard.
        #expect(first + (frames + Int64(block.sampleCount)) * 1_000_000_000 / Int64(rate) <= now + 3_000_000)
        let before = samples.count
        block.withSamples { samples += $0 }
        let isSilent = samples[before...].allSatisfy { $0 == 0 }
        sounding = isSilent ? 0 : (block.isDiscontinuity ? 0 : sounding) + block.sampleCount
        if block.isDiscontinuity { gaps += 1 }
    }

    /// When the sound that was given ends, nanoseconds of the chain clock.
    var end: Int64 { (origin ?? 0) + Int64(Double(samples.count / channels) / Double(rate) * 1e9) }

    /// Listens until the sound is no further behind the present than the card allows; false where it stays behind.
    func catchUp() throws -> Bool {
        var isThere = false
        try listen(seconds: 60) {
            isThere = end > now - Self.behind
            return isThere
        }
        return isThere
    }

    func event(_ name: String) -> Event? { events.first { $0.name == name } }

    /// One channel, from a second on.
    func channel(_ index: Int, from second: Double, seconds: Double) -> [Float] {
        let end = min(Int((second + seconds) * Double(rate)), samples.count / channels)
        return (min(Int(second * Double(rate)), end)..<end).map { samples[$0 * channels + index] }
    }

    /// Amplitude and frequency of the tone near `hertz`, from the phases of windows of a quarter second.
    func tone(near hertz: Double, from second: Double, seconds: Double) -> (amplitude: Double, hertz: Double) {
        let tone = channel(0, from: second, seconds: seconds)
        let window = rate / 4
        var (phases, amplitude) = ([Double](), 0.0)
        for start in stride(from: 0, through: tone.count - window, by: window) {
            var (sine, cosine) = (0.0, 0.0)
            for index in start..<start + window {
                let phase = 2 * Double.pi * hertz * Double(index) / Double(rate)
                sine += Double(tone[index]) * sin(phase)
                cosine += Double(tone[index]) * cos(phase)
            }
            phases.append(atan2(cosine, sine))
            amplitude = 2 * (sine * sine + cosine * cosine).squareRoot() / Double(window)
        }
        let turns = zip(phases, phases.dropFirst()).map { remainder($1 - $0, 2 * Double.pi) }
        return (amplitude, hertz + turns.reduce(0, +) / Double(turns.count) / (2 * Double.pi) * 4)
    }

    /// The longest run of digital silence in both channels, in frames.
    var longestSilence: Range<Int> {
        var (longest, run) = (0..<0, 0)
        for frame in 0..<samples.count / channels {
            run = samples[frame * channels] == 0 && samples[frame * channels + channels - 1] == 0 ? run + 1 : 0
            if run > longest.count { longest = frame + 1 - run..<frame + 1 }
        }
        return longest
    }

    func figure(_ name: String) -> Double {
        driver.stage.figures.json.asObject?.first { $0.key == name }?.value.asDouble ?? .nan
    }
}

/// Counts what comes, and whether its times rise.
private final class SoundSink: Sink {
    static let info = StageInfo(id: "sound-sink", summary: "Takes sound.", input: .audio)

    struct Options: StageOptions {}

    struct Count: Sendable {
        var samples = 0
        var late = 0
    }

    private static let counts = Locked(Count())
    static var count: Count { counts.withLock { $0 } }
    static func reset() { counts.withLock { $0 = Count() } }

    var options: Options
    private var end = MediaTime.min

    init(options: Options, context: StageContext) { self.options = options }

    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard case .audioBlock(let block) = consume input else { return .dropped(.byStage) }
        let samples = block.sampleCount
        // Rounding down makes an end a nanosecond early.
        let isLate = block.pts + MediaTime(nanoseconds: 1) < end
        end = block.pts + block.duration
        Self.counts.withLock {
            $0.samples += samples
            $0.late += isLate ? 1 : 0
        }
        return .delivered
    }
}

@Suite(
    .serialized,
    .enabled(if: FakeMicrophone.isBuilt, "needs a C compiler and ALSA's headers: apt-get install gcc libasound2-dev"))
struct ALSASourceTests {
    /// Of the microphone's sine.
    private static let amplitude = 10_922.0 / 32_768

    /// What `listen` gives where no sound was lost but what shall be. A busy machine may read later than the card
    /// remembers: then it listens anew, with another listener.
    private func undisturbed(overruns: Double = 0, _ listen: () throws -> SoundListener) throws -> SoundListener {
        for _ in 1..<20 {
            let listener = try listen()
            let disturbances = ["stampsReplaced", "jumps"].reduce(Double(listener.holes)) { $0 + listener.figure($1) }
            if listener.figure("overruns") == overruns, disturbances == 0 { return listener }
        }
        return try listen()
    }

    @Test func givesLevelAndToneOfTheMicrophone() throws {
        var (before, after, isInTime) = (Int64(0), Int64(0), false)
        let listener = try undisturbed {
            let listener = try SoundListener("mic_exact")
            before = listener.now
            try listener.listen(seconds: 2.5)
            isInTime = try listener.catchUp()
            after = listener.now
            try listener.driver.stop()
            return listener
        }
        let tone = listener.tone(near: 440, from: 0.5, seconds: 1.75)
        #expect(abs(tone.amplitude / Self.amplitude - 1) < 0.001)
        #expect(abs(tone.hertz - 440) < 0.2)
        #expect(listener.channel(0, from: 1, seconds: 1) == listener.channel(1, from: 1, seconds: 1))
        let origin = try #require(listener.origin)
        #expect(origin > before - 600_000_000 && origin < before + 200_000_000)
        #expect(listener.end < after && isInTime)
        #expect(listener.gaps == 0)
        #expect(listener.figure("overruns") == 0 && listener.figure("stampsReplaced") == 0)
    }

    @Test func takesUpTheDriftOfAFastCard() throws {
        let listener = try undisturbed {
            let listener = try SoundListener("mic_fast", channels: 1)
            try listener.listen(seconds: 9)
            try listener.driver.stop()
            return listener
        }
        #expect(abs(listener.figure("ppm") - 300) < 60)
        // The microphone counts its own frames, which are shorter: on the chain's clock its tone is higher.
        let tone = listener.tone(near: 440, from: 4, seconds: 4.75)
        #expect(abs(tone.hertz - 440 * 1.0003) < 440 * 0.0001)
    }

    @Test func convertsRateAndSamplesBehindAPlug() throws {
        let listener = try undisturbed {
            let listener = try SoundListener("mic_plug", ", \"periodMs\": 20", rate: 44_100, channels: 1)
            try listener.listen(seconds: 1.5)
            try listener.driver.stop()
            return listener
        }
        let tone = listener.tone(near: 440, from: 0.25, seconds: 1)
        #expect(abs(tone.amplitude / Self.amplitude - 1) < 0.001)
        #expect(abs(tone.hertz - 440) < 0.5)
    }

    @Test func fillsAnOverrunWithSilenceOfItsLength() throws {
        var (after, isInTime) = (Int64(0), false)
        let listener = try undisturbed(overruns: 1) {
            let listener = try SoundListener("mic_stall")
            try listener.listen(seconds: 0.6)
            // The chain stands still for longer than the card remembers.
            usleep(900_000)
            try listener.listen(seconds: 60) { listener.gaps > 0 && listener.sounding > 48_000 * 7 / 10 }
            isInTime = try listener.catchUp()
            after = listener.now
            try listener.driver.stop()
            return listener
        }
        #expect(listener.figure("overruns") >= 1)
        let overrun = try #require(listener.event("overrun"))
        let missing = try #require(overrun.details.asObject?.first { $0.key == "missingMs" }?.value.asDouble)
        #expect(missing > 850)
        let silence = listener.longestSilence
        #expect(abs(Double(silence.count) / 48 - missing) < 2)
        #expect(listener.gaps >= 1)
        // The tone goes on behind the silence, at its place in time.
        #expect(listener.end < after && isInTime)
        let second = Double(silence.upperBound) / 48_000 + 0.1
        #expect(abs(listener.tone(near: 440, from: second, seconds: 0.5).amplitude / Self.amplitude - 1) < 0.01)
    }

    @Test func givesSilenceWhileTheDeviceIsGone() throws {
        var (after, isInTime) = (Int64(0), false)
        var recovering: String?
        let listener = try undisturbed {
            let listener = try SoundListener("mic_pull")
            try listener.listen(seconds: 0.5)
            try FakeMicrophone.set("gone", of: "mic_pull", true)
            try listener.listen(seconds: 60) { listener.event("device-lost") != nil }
            recovering = listener.driver.context.recovering
            try listener.listen(seconds: 60) { listener.figure("silentSamples") > 48_000 * 14 / 10 }
            try FakeMicrophone.set("gone", of: "mic_pull", false)
            try listener.listen(seconds: 60) { listener.event("device-back") != nil }
            try listener.listen(seconds: 60) { listener.sounding > 48_000 * 4 / 10 }
            isInTime = try listener.catchUp()
            after = listener.now
            try listener.driver.stop()
            return listener
        }
        #expect(listener.event("device-lost")?.details.asObject?.first?.value.asString?.contains("ENODEV") == true)
        #expect(recovering?.contains("the device is lost") == true)
        #expect(listener.event("device-back") != nil)
        #expect(listener.driver.context.recovering == nil)
        #expect(listener.events.filter { $0.name == "device-lost" }.count == 1)
        #expect(listener.figure("losses") == 1 && listener.figure("overruns") == 0)
        #expect(listener.longestSilence.count > 48_000 * 14 / 10)
        #expect(listener.end < after && isInTime)
        let seconds = Double(listener.samples.count / 2) / 48_000
        let tone = listener.tone(near: 440, from: seconds - 0.3, seconds: 0.3)
        #expect(abs(tone.amplitude / Self.amplitude - 1) < 0.01)
    }

    @Test func noticesACardThatStopsDelivering() throws {
        let listener = try SoundListener("mic_quiet")
        try listener.listen(seconds: 0.3)
        try FakeMicrophone.set("still", of: "mic_quiet", true)
        try listener.listen(seconds: 60) { listener.event("device-lost") != nil }
        let text = try #require(listener.event("device-lost")?.text)
        #expect(text.contains("no sound for"))
        // Of "no sound for 1007 ms".
        let milliseconds = try #require(text.split(separator: " ").compactMap { Int($0) }.first)
        #expect(milliseconds >= 1000)
        // It can be opened again, and is as silent as before: one loss, and silence without a gap.
        try listener.listen(seconds: 2.5)
        #expect(listener.figure("losses") == 1)
        #expect(listener.event("device-back") == nil)
        try FakeMicrophone.set("still", of: "mic_quiet", false)
        try listener.listen(seconds: 60) { listener.event("device-back") != nil }
        try listener.driver.stop()
        #expect(listener.event("device-back") != nil)
    }

    @Test func startsWithoutADeviceAndWaitsForIt() throws {
        try FakeMicrophone.set("gone", of: "mic_late", true)
        let listener = try SoundListener("mic_late", ", \"ifMissing\": \"wait\"")
        try listener.listen(seconds: 60) { listener.samples.count > 2 * 48_000 * 3 / 10 }
        #expect(listener.samples.count > 2 * 48_000 * 3 / 10)
        try FakeMicrophone.set("gone", of: "mic_late", false)
        try listener.listen(seconds: 60) { listener.event("device-back") != nil }
        try listener.listen(seconds: 60) { (listener.samples.suffix(4800).max() ?? 0) > 0.3 }
        try listener.driver.stop()
        #expect(listener.event("device-back") != nil)
        #expect((listener.samples.suffix(4800).max() ?? 0) > 0.3)
        #expect(listener.figure("losses") == 0)
    }

    @Test func failsWithoutItsDeviceWhenItShall() throws {
        do {
            _ = try SoundListener("no_such_microphone")
            Issue.record("a device was made up")
        } catch {
            #expect(
                "\(error)".contains(
                    "there is no device 'no_such_microphone' for capture. Plug it in, or use a device that `framehost describe alsa-source` lists"
                )
            )
        }
        let listener = try SoundListener("mic_pull", ", \"whileLost\": \"stop\"")
        try listener.listen(seconds: 0.2)
        try FakeMicrophone.set("gone", of: "mic_pull", true)
        defer { try? FakeMicrophone.set("gone", of: "mic_pull", false) }
        #expect(throws: (any Error).self) { try listener.listen(seconds: 60) }
        try listener.driver.stop()
        try listener.driver.stop()
    }

    @Test func listsTheMicrophones() throws {
        let topic = try #require(try ALSASource.topics().first { $0.name == "mic_exact" })
        #expect(topic.summary.contains("Test microphone mic_exact"))
        let one = try #require(try ALSASource.topic("MIC_EXACT"))
        #expect(one.facts == [StageTopic.Fact("sampleRate", "8000...96000"), StageTopic.Fact("channels", "1...2")])
        #expect(try ALSASource.topic("no_such_microphone") == nil)
    }

    /// The microphone `mic_chain` before a ``SoundSink``.
    private func chain() throws -> Chain {
        let options = try JSONReader.read(
            Array(#"{ "device": "mic_chain", "ifMissing": "wait" }"#.utf8), file: "options"
        ).asObject
        return try Chain(
            ChainRequest(
                file: "test.json", folder: ".",
                stages: [
                    StageRequest(id: "mic", type: StageType(ALSASource.self), options: options ?? [], from: []),
                    StageRequest(id: "sink", type: StageType(SoundSink.self), options: [], from: [0]),
                ]))
    }

    /// What a card may be doing when the chain is stopped.
    enum State: String, CaseIterable, Sendable { case missing, streaming, still, lost }

    /// A thread that is not back 0.8 s after a stop is abandoned by name. A busy machine may keep any thread from its
    /// stop for so long, but not every time.
    @Test(arguments: State.allCases) func stopsWithinASecond(in state: State) throws {
        for attempt in 1...5 {
            let (result, nanoseconds) = try stop(in: state)
            let isClean = nanoseconds < 1_000_000_000 && result.isSuccess && result.drops.isEmpty
            guard isClean || attempt == 5 else { continue }
            #expect(nanoseconds < 1_000_000_000)
            #expect(result.isSuccess && result.drops.isEmpty, "\(result)")
            break
        }
    }

    private func stop(in state: State) throws -> (result: Chain.Result, nanoseconds: Int64) {
        SoundSink.reset()
        func set(_ file: String, _ isSet: Bool) throws { try FakeMicrophone.set(file, of: "mic_chain", isSet) }
        try set("gone", state == .missing)
        defer {
            try? set("gone", false)
            try? set("still", false)
        }
        let chain = try chain()
        let subscription = chain.subscribe()
        let clock = ChainClock()
        let deadline = clock.now() + 60_000_000_000
        var names: [String] = []
        var looks = 0
        var cancelledAt: Int64 = 0
        let result = chain.run {
            names += subscription.take().events.map(\.name)
            guard chain.currentState == .streaming, cancelledAt == 0, SoundSink.count.samples > 9600 else { return }
            looks += 1
            switch state {
            case .missing, .streaming: break
            case .still: if looks == 1 { try? set("still", true) }
            case .lost: if looks == 1 { try? set("gone", true) }
            }
            let isReady = state == .lost ? names.contains("device-lost") : looks > 5
            guard isReady || clock.now() > deadline else { return }
            cancelledAt = clock.now()
            chain.cancel()
        }
        let nanoseconds = clock.now() - cancelledAt
        #expect(cancelledAt > 0 && cancelledAt < deadline, "\(names)")
        #expect(SoundSink.count.late == 0)
        // Its thread may still be at work.
        if !result.abandoned.isEmpty { _ = Unmanaged.passRetained(chain) }
        return (result, nanoseconds)
    }

    @Test func goesOnAfterAPauseWithoutAnOverrun() throws {
        for attempt in 1...5 {
            let run = try pauseAndResume()
            // A busy machine may read later than the card remembers, but not every time.
            let isDisturbed =
                !run.result.isSuccess || !run.result.drops.isEmpty || run.names.contains("overrun")
                || run.names.contains("device-lost")
            if isDisturbed, attempt < 5 { continue }
            #expect(run.result.isSuccess && run.result.drops.isEmpty, "\(run.result)")
            #expect(run.names.contains("stage-resumed"))
            #expect(!run.names.contains("overrun") && !run.names.contains("device-lost"))
            // Sound again, and nothing in place of what was not wanted.
            #expect(run.samples > 14_000 && Double(run.samples) < 48_000 * (run.seconds + 0.4))
            break
        }
    }

    /// Pauses the microphone for almost a second, and waits for some sound after that.
    ///
    /// - Returns: With the names of the events, how many samples came in how many seconds since the microphone was
    ///   asked to go on.
    private func pauseAndResume() throws -> (result: Chain.Result, names: [String], samples: Int, seconds: Double) {
        SoundSink.reset()
        let chain = try chain()
        let subscription = chain.subscribe()
        let clock = ChainClock()
        let deadline = clock.now() + 60_000_000_000
        var names: [String] = []
        var (pausedAt, resumedAt): (Int64, Int64) = (0, 0)
        var (before, after, seconds) = (0, 0, 0.0)
        let result = chain.run {
            names += subscription.take().events.map(\.name)
            // The time last: no sample is later than that.
            let samples = SoundSink.count.samples
            let now = clock.now()
            if pausedAt == 0, samples > 9600 {
                pausedAt = now
                chain.pause(stage: "mic") { _ in }
            } else if resumedAt == 0, pausedAt > 0, now - pausedAt > 900_000_000 {
                (resumedAt, before) = (now, samples)
                chain.resume(stage: "mic") { _ in }
            } else if now > deadline || names.contains("stage-resumed") && samples - before > 14_000 {
                (after, seconds) = (samples, Double(now - resumedAt) / 1e9)
                chain.cancel()
            }
        }
        #expect(SoundSink.count.late == 0)
        if !result.abandoned.isEmpty { _ = Unmanaged.passRetained(chain) }
        return (result, names, after - before, seconds)
    }
}
