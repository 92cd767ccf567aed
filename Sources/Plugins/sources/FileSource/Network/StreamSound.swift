// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// What a connection has found out about its sound. Immutable once made; handed from the reader's thread to the
/// sound's stage thread, hence `@unchecked Sendable`.
final class SoundTerms: @unchecked Sendable {
    let parameters: UnsafeMutablePointer<AVCodecParameters>
    let timeBase: TimeBase
    let format: AudioTrackFormat

    /// Nil where the track has no known rate and channels, or no decoder.
    init?(_ stream: UnsafeMutablePointer<AVStream>) {
        let about = stream.pointee.codecpar.pointee
        guard AudioFormat.sampleRates.contains(Int(about.sample_rate)), (1...64).contains(about.ch_layout.nb_channels),
            avcodec_find_decoder(about.codec_id) != nil, let copy = avcodec_parameters_alloc()
        else { return nil }
        parameters = copy
        let base = stream.pointee.time_base
        timeBase = base.num > 0 && base.den > 0 ? TimeBase(base.num, base.den) : TimeBase(1, AV_TIME_BASE)
        format = AudioTrackFormat(stream, timeBase: timeBase)
        guard avcodec_parameters_copy(copy, stream.pointee.codecpar) >= 0 else { return nil }
    }

    deinit {
        var parameters: UnsafeMutablePointer<AVCodecParameters>? = parameters
        avcodec_parameters_free(&parameters)
    }
}

/// Where a connection's times lie on the chain clock, as its pictures are placed. The sound uses the same offset, so
/// that both stay together. [any thread]
final class StreamClock: Sendable {
    private struct State {
        var connection: ObjectIdentifier?
        var offset: Int64?
        /// The time of the connection's first picture, chain clock.
        var begin: Int64?
        /// No picture follows.
        var hasEnded = false
    }
    private let state = Locked(State())

    /// [stage thread of the pictures] - Parameter time: Where a picture is placed; nil before the connection's first.
    func set(_ offset: Int64?, of terms: StreamTerms, at time: Int64?) {
        state.withLock { state in
            let connection = ObjectIdentifier(terms)
            let begin = state.connection == connection ? state.begin ?? time : time
            state = State(connection: connection, offset: offset, begin: begin)
        }
    }

    /// [any thread] The time of a connection's first picture, chain clock; nil where none was placed.
    func begin(of terms: StreamTerms) -> Int64? {
        state.withLock { $0.connection == ObjectIdentifier(terms) ? $0.begin : nil }
    }

    /// [stage thread of the pictures] Says that no picture follows.
    func end() { state.withLock { $0.hasEnded = true } }

    enum Place: Equatable {
        /// To be added to the stream's times, nanoseconds.
        case offset(Int64)
        /// The stream has no times: what is beside a picture came with it.
        case untimed
        /// No picture of the connection was placed yet.
        case unknown
        /// The pictures are from another connection by now, or have ended.
        case over
    }

    /// [stage thread of the sound] - Parameter isNewest: Whether no connection was made after that of `terms`.
    func place(of terms: StreamTerms, isNewest: Bool) -> Place {
        state.withLock { state in
            let missing: Place = state.hasEnded ? .over : .unknown
            guard state.connection == ObjectIdentifier(terms) else { return isNewest ? missing : .over }
            return state.offset.map { .offset($0) } ?? (terms.isUntimed && state.begin != nil ? .untimed : missing)
        }
    }
}

/// Finds the source whose connection gives a ``NetworkSound`` or ``NetworkUnits`` what it gives.
enum StreamReaders {
    private struct Key: Hashable {
        var run: ObjectIdentifier
        var chain: String
        var stage: String
    }

    private struct Entry {
        weak var reader: NetworkReader?
    }

    /// Of each source, the readers of its instances, the newest last: one that is refused leaves those before it.
    private static let entries = Locked<[Key: [Entry]]>([:])

    private static func key(_ context: StageContext, _ stage: String) -> Key {
        Key(run: ObjectIdentifier(context.files), chain: context.chainName, stage: stage)
    }

    /// [control thread] Makes the reader of a source known.
    static func add(_ reader: NetworkReader, of context: StageContext) {
        entries.withLock { entries in
            entries = entries.mapValues { $0.filter { $0.reader?.hasEnded == false } }.filter { !$0.value.isEmpty }
            entries[key(context, context.stageID), default: []].append(Entry(reader: reader))
        }
    }

    /// [control thread, stage thread of the further output] The reader of the source to which `cam.audio` belongs; nil
    /// where there is none.
    static func reader(for context: StageContext) -> NetworkReader? {
        guard let dot = context.stageID.lastIndex(of: ".") else { return nil }
        let stage = String(context.stageID[..<dot])
        return entries.withLock { $0[key(context, stage)]?.last { $0.reader?.hasEnded == false }?.reader }
    }
}

/// A further output's way into a connection of which an instance before it has taken the beginning: it was put into a
/// running chain, or has replaced that instance.
struct ConnectionJoin {
    private var hasLooked = false
    /// What was captured before this is left out: it is from when nobody took it. The chain's clock.
    private(set) var begin: Int64 = 0

    /// [stage thread] The connection, at the first call; nil where its beginning is still to be taken.
    mutating func connection(of queue: PacketQueue, now: Int64) -> StreamTerms? {
        guard !hasLooked else { return nil }
        hasLooked = true
        guard let terms = queue.current else { return nil }
        begin = now
        return terms
    }
}

/// Looks for another reader where one has ended with the pictures' stage, which may start again.
struct NextReader {
    enum Found {
        case reader(NetworkReader)
        case wait
        case none
    }

    /// How long the pictures' stage may take to start again after its fault: half a minute between two attempts, and the
    /// attempt itself.
    private let patience: Int64
    private var since: Int64?

    init(_ options: NetworkSourceOptions) {
        patience =
            options.whileLost == .stop ? 35_000_000_000 + Int64(options.connectSeconds * 1e9) : 5_000_000_000
    }

    /// [stage thread] - Parameters:
    ///   - last: The reader that has ended.
    ///   - gives: Whether a reader has what is wanted.
    mutating func look(
        _ context: StageContext, instead last: NetworkReader?, now: Int64, where gives: (NetworkReader) -> Bool
    ) -> Found {
        let begin = since ?? now
        since = begin
        if let found = StreamReaders.reader(for: context), found !== last, gives(found) {
            since = nil
            return .reader(found)
        }
        return now - begin < patience ? .wait : .none
    }
}
