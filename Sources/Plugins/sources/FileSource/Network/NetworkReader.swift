// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import FrameSupport
import Glibc
import LiveInput

/// Reads a stream on a thread of its own, and connects again until it is ended.
///
/// libavformat's calls block, and the lookup of a name cannot even be interrupted. So no other thread waits for this
/// one for long: it keeps itself alive until it ends. `@unchecked Sendable`: everything that other threads use is under
/// the queue's lock, or atomic.
final class NetworkReader: @unchecked Sendable {
    /// Room for more than a minute: a playlist's parts come in bursts, and wait while the pictures wait for their
    /// times.
    private static let mostSoundPackets = 4096
    /// From one try to the next of a login that was refused.
    private static let loginPause: Int64 = 60_000_000_000

    let queue = PacketQueue()
    /// The sound's packets, and what happens to the connection; nil where the sound is not taken.
    let sound: PacketQueue?
    /// The video's packets once more, for ``NetworkUnits``; nil where these are not taken.
    let units: PacketQueue?
    /// The queues beside ``queue``.
    private let further: [PacketQueue]
    /// Tells the sound where the pictures are placed.
    let clock = StreamClock()
    private let settings: NetworkInput.Settings
    private let interrupt = Interrupt()
    private let stageID: String
    private let memory: StreamMemory?
    /// Whether it ends when the first attempt fails.
    private let failsAtOnce: Bool
    private let state = Locked(State())

    private struct State {
        /// What access units are planned for. Others are refused.
        var expected: EncodedFormat?
        var expectedSound: AudioTrackFormat?
        /// Whether options say what is expected.
        var isWritten = false
        var expectedUnits: EncodedFormat?
        var isRunning = false
        var attempts = 0
        var packets = 0
        /// Packets that came only because the connection was given up.
        var late = 0
        /// Packets of RTP and segments of HLS that never came.
        var missed = (packets: 0, segments: 0)
        /// The terms of the newest connection.
        var newest: ObjectIdentifier?
        var terms: StreamTerms?
    }

    /// [control thread] The terms that the chain is planned by; nil where the stream is opened only when the chain
    /// runs.
    var planned: StreamTerms? {
        get { state.withLock { $0.terms } }
        set { state.withLock { $0.terms = newValue } }
    }

    /// [any thread] Whether no connection was made after this one.
    func isNewest(_ terms: StreamTerms) -> Bool { state.withLock { $0.newest == ObjectIdentifier(terms) } }

    /// [any thread] Whether items come in bursts and are given at their times.
    var isPacedByStream: Bool { settings.address.scheme.isPacedByStream }

    /// - Parameters:
    ///   - failsAtOnce: Whether it ends when the first attempt fails.
    ///   - memory: Where the stream is remembered; nil where it is not.
    init(
        _ settings: NetworkInput.Settings, stageID: String, failsAtOnce: Bool, memory: StreamMemory? = nil
    ) {
        self.settings = settings
        self.memory = memory
        sound = settings.takesSound ? PacketQueue(mostPackets: Self.mostSoundPackets, dropsOldest: true) : nil
        units = settings.takesUnits ? PacketQueue() : nil
        further = [sound, units].compactMap { $0 }
        self.stageID = stageID
        self.failsAtOnce = failsAtOnce
    }

    /// [control thread, setup thread] - Throws: ``FrameHostError`` `.exhausted`.
    func start() throws {
        state.withLock { $0.isRunning = true }
        do { try NamedThread.start("net:\(stageID)") { self.run() } } catch {
            throw FrameHostError(
                .exhausted, what: "the network thread could not be started: \(error)", remedy: NoThread.remedy)
        }
    }

    /// [control thread] Says what access units and packets of sound the chain is planned for, where no others can be used.
    ///
    /// - Parameter isWritten: Whether the options say so (`codec`, `size`).
    func expect(_ format: EncodedFormat, sound: AudioTrackFormat?, isWritten: Bool) {
        state.withLock { ($0.expected, $0.expectedSound, $0.isWritten) = (format, sound, isWritten) }
    }

    /// [control thread] The sound that the chain is planned for.
    var expectedSound: AudioTrackFormat? { state.withLock { $0.expectedSound } }

    /// [control thread] What the output `units` is planned for, where the stream is opened only when the chain runs.
    /// A stream that is another one has pictures all the same.
    var expectedUnits: EncodedFormat? {
        get { state.withLock { $0.expectedUnits } }
        set { state.withLock { $0.expectedUnits = newValue } }
    }

    /// [any thread] Ends every wait, and with it the reader.
    func end() {
        interrupt.end()
        queue.end()
        for queue in further { queue.end() }
    }

    /// [any thread] Whether it was ended.
    var hasEnded: Bool { interrupt.hasEnded }

    /// [stage thread] Ends the reader, and waits for that at most 500 ms.
    func stop() {
        end()
        MonotonicTime.wait(milliseconds: 500) { !isRunning }
    }

    /// [any thread]
    var isRunning: Bool { state.withLock { $0.isRunning } }
    /// [any thread] How many attempts to connect there were.
    var attempts: Int { state.withLock { $0.attempts } }
    /// [any thread] Packets that came only because the connection was given up.
    var late: Int { state.withLock { $0.late } }
    /// [any thread] Packets of RTP and segments of HLS that never came, of the sound too. Over RTSP by TCP packets are known
    /// only if ``RTSPClient`` reads them.
    var missed: (packets: Int, segments: Int) { state.withLock { $0.missed } }
    /// [any thread] Packets of the video that were received.
    var packets: Int { state.withLock { $0.packets } }

    // MARK: The thread

    private func run() {
        defer { state.withLock { $0.isRunning = false } }
        fh_av_log_quiet()
        var packet = av_packet_alloc()
        defer { av_packet_free(&packet) }
        guard let packet else {
            return queue.put(
                .refused(
                    FrameHostError(
                        .exhausted, what: "not enough memory for a packet",
                        remedy: "Free some memory, and try again.")))
        }
        var backoff = Backoff()
        var speaker: NetworkInput.Speaker?
        while !interrupt.hasEnded {
            state.withLock { $0.attempts += 1 }
            do {
                let mayWait = failsAtOnce && memory == nil && state.withLock { $0.attempts == 1 }
                let input = try NetworkInput(settings, interrupt, mayWait: mayWait, last: speaker)
                speaker = input.speaker
                if interrupt.hasEnded { return }
                interrupt.noteLogin(isRefused: false)
                if let expected = state.withLock({ $0.expected }), let fault = misfit(input.terms, expected) {
                    memory?.write(input.terms.remembered, keepsSound: !settings.takesSound)
                    throw fault
                }
                state.withLock { $0.newest = ObjectIdentifier(input.terms) }
                queue.put(.opened(input.terms))
                for queue in further { queue.put(.opened(input.terms)) }
                guard read(input, packet, &backoff) else { return }
            } catch {
                if interrupt.hasEnded { return }
                var fault = FrameHostError.wrap(error)
                let isLast = failsAtOnce && state.withLock { $0.attempts == 1 }
                let again =
                    interrupt.isLoginRefused
                    ? "The login is sent again once a minute: cameras lock out who tries often."
                    : "The source keeps trying."
                if !isLast { fault.remedy += (fault.remedy.isEmpty ? "" : " ") + again }
                queue.put(.refused(fault))
                if isLast { return }
            }
            queue.sleep(until: MonotonicTime.now() + (interrupt.isLoginRefused ? Self.loginPause : backoff.next()))
        }
    }

    /// Why a chain that is planned for a format cannot take a stream; nil where it can.
    private func misfit(_ terms: StreamTerms, _ expected: EncodedFormat) -> FrameHostError? {
        guard let coding = terms.coding, let video = expected.video else { return nil }
        let plan: NetworkFault.Plan =
            state.withLock { $0.isWritten } ? .written : memory != nil ? .remembered : .found
        guard coding.codec == expected.codec else {
            return NetworkFault.anotherCodec(
                settings.address.shown, terms.text, planned: expected.codec, plan)
        }
        guard video.width != terms.shape.width || video.height != terms.shape.height else { return nil }
        return NetworkFault.anotherSize(
            settings.address.shown, width: terms.shape.width, height: terms.shape.height,
            planned: PictureSize(video.width, video.height), plan)
    }

    /// Reads until the stream is lost; false when nothing more will come.
    private func read(
        _ input: NetworkInput, _ packet: UnsafeMutablePointer<AVPacket>, _ backoff: inout Backoff
    ) -> Bool {
        var spare = av_packet_alloc()
        defer { av_packet_free(&spare) }
        var isRemembered = memory == nil
        var late = LatePacket(input.terms.timeBase)
        input.beginWait()
        while true {
            let step = input.read(into: packet)
            let missed = input.takeMissed()
            if missed != (0, 0) {
                state.withLock {
                    $0.missed.packets += missed.packets
                    $0.missed.segments += missed.segments
                }
            }
            switch step {
            case .packet:
                backoff.reset()
                state.withLock { $0.packets += 1 }
                if late.holds(packet, now: MonotonicTime.now(), isOverdue: interrupt.mustStop) {
                    input.beginWait(isOverdue: interrupt.mustStop)
                    continue
                }
                if let held = late.take() { give(held, input, spare) }
                give(packet, input, spare)
                if !isRemembered { memory?.write(input.terms.remembered, keepsSound: !settings.takesSound) }
                isRemembered = true
                input.beginWait()
            case .sound:
                if let sound { waitForRoom(in: sound, input) }
                sound?.put(packet, waits: false)
            case .other: continue
            case .ended:
                if let held = late.take() { give(held, input, spare) }
                queue.put(.ended)
                for queue in further { queue.put(.ended) }
                return false
            case .lost(let reason):
                if interrupt.hasEnded { return false }
                if late.isHeld { state.withLock { $0.late += 1 } }
                queue.put(.lost(reason))
                for queue in further { queue.put(.lost(reason)) }
                return true
            }
        }
    }

    /// Hands a packet of the video on.
    ///
    /// - Parameter spare: For a second reference to its bytes; nil where there was no memory.
    private func give(
        _ packet: UnsafeMutablePointer<AVPacket>, _ input: NetworkInput, _ spare: UnsafeMutablePointer<AVPacket>?
    ) {
        if let units, let spare, av_packet_ref(spare, packet) >= 0 {
            waitForRoom(in: units, input)
            units.put(spare, waits: false)
        }
        let dropped = queue.dropped
        queue.put(packet, waits: isPacedByStream)
        // If nothing of a connection was taken yet, the sound from before its first picture would only come too late.
        if queue.dropped > dropped, queue.current == nil, let begin = queue.begin { sound?.drop(before: begin) }
    }

    /// What is paced by its times is not lost for want of room. Pictures that wait go on without this thread.
    private func waitForRoom(in further: PacketQueue, _ input: NetworkInput) {
        while isPacedByStream, !further.hasRoom, queue.packetsWaiting > 0, !interrupt.hasEnded {
            queue.sleep(until: MonotonicTime.now() + 5_000_000)
            input.beginWait()
        }
    }
}
