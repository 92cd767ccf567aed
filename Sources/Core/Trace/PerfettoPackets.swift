// SPDX-License-Identifier: Apache-2.0

/// Writes a trace's packets as Perfetto reads them: one sequence, names interned, times of the monotonic clock.
///
/// A trace is `Trace.packet` again and again, so a file is whole after any packet. Used only by the trace thread.
///
/// - SeeAlso: Perfetto's trace_packet.proto, track_event.proto, track_descriptor.proto, interned_data.proto.
struct PerfettoPackets {
    /// Field numbers of Perfetto's messages.
    private enum Field {
        static let packet = 1
        enum Packet {
            static let clockSnapshot = 6
            static let timestamp = 8
            static let sequence = 10
            static let event = 11
            static let internedData = 12
            static let sequenceFlags = 13
            static let defaults = 59
            static let track = 60
            static let isFirst = 87
        }
        enum Event {
            static let categoryNumber = 3
            static let annotation = 4
            static let type = 9
            static let nameNumber = 10
            static let track = 11
            static let name = 23
            static let counter = 30
            static let flow = 47
        }
        enum Interned {
            static let category = 1
            static let name = 2
            static let annotation = 3
        }
        enum Track {
            static let number = 1
            static let name = 2
            static let process = 3
            static let thread = 4
            static let parent = 5
            static let counter = 8
        }
    }

    private enum EventType: UInt64 { case begin = 1, end, instant, counter }

    /// What kind of thing a slice or mark is.
    enum Category: UInt64, CaseIterable {
        case stage = 1
        case wait, drop, event, trace
    }

    /// The annotations of slices and marks.
    enum Annotation: UInt64, CaseIterable {
        case frame = 1
        case stage, count, reason, text, level
    }

    enum Value {
        case number(Int64)
        case text(String)
    }

    /// The track of events of the chain.
    static let eventTrack: UInt64 = 2
    private static let processTrack: UInt64 = 1
    static let mostNames = 20_000
    private static let otherName: UInt64 = 1
    /// clock_gettime(2).
    private static let monotonic: UInt64 = 3

    private(set) var bytes = ProtoBytes()
    private let process: Int32
    private var names: [String: UInt64] = [:]
    private var lastTrack = Self.eventTrack
    /// Packets since the trace began.
    private(set) var count = 0

    init(process: Int32) {
        self.process = process
        bytes.reserve(1 << 20)
    }

    mutating func clear() { bytes.clear() }
    mutating func cut(to count: Int) { bytes.cut(to: count) }

    // MARK: What comes first

    /// Writes the clocks, the process, and what all packets have in common.
    ///
    /// - Parameters:
    ///   - boot: The moment `time` by `CLOCK_BOOTTIME`.
    ///   - unix: The moment `time` in nanoseconds since 1970.
    mutating func begin(title: String, at time: Int64, boot: Int64, unix: Int64) {
        packet(flags: 1) { packet in
            packet.number(Field.Packet.isFirst, UInt64(1))
            packet.message(Field.Packet.clockSnapshot) { snapshot in
                for (clock, reading) in [(6, boot), (Self.monotonic, time), (1, unix)] {
                    snapshot.message(1) {
                        $0.number(1, clock)
                        $0.number(2, reading)
                    }
                }
                snapshot.number(2, Self.monotonic)
            }
            packet.message(Field.Packet.defaults) { $0.number(58, Self.monotonic) }
            packet.message(Field.Packet.internedData) { data in
                for category in Category.allCases {
                    Self.name(&data, Field.Interned.category, category.rawValue, "\(category)")
                }
                for annotation in Annotation.allCases {
                    Self.name(&data, Field.Interned.annotation, annotation.rawValue, "\(annotation)")
                }
            }
        }
        let process = process
        packet { packet in
            packet.message(Field.Packet.track) { track in
                track.number(Field.Track.number, Self.processTrack)
                track.message(Field.Track.process) {
                    $0.number(1, Int64(process))
                    $0.text(6, title)
                }
            }
        }
        describe(Self.eventTrack, "events") { _ in }
        _ = number(of: "other")
    }

    private static func name(_ data: inout ProtoBytes, _ field: Int, _ number: UInt64, _ text: String) {
        data.message(field) {
            $0.number(1, number)
            $0.text(2, text)
        }
    }

    // MARK: Tracks

    private mutating func describe(_ number: UInt64, _ name: String, _ kind: (inout ProtoBytes) -> Void) {
        packet { packet in
            packet.message(Field.Packet.track) { track in
                track.number(Field.Track.number, number)
                track.number(Field.Track.parent, Self.processTrack)
                if !name.isEmpty { track.text(Field.Track.name, name) }
                kind(&track)
            }
        }
    }

    private mutating func nextTrack() -> UInt64 {
        lastTrack += 1
        return lastTrack
    }

    /// Begins the lane of a thread.
    mutating func thread(_ name: String, number: Int32) -> UInt64 {
        let track = nextTrack()
        let process = process
        describe(track, "") { track in
            track.message(Field.Track.thread) {
                $0.number(1, Int64(process))
                $0.number(2, Int64(number))
                $0.text(5, name)
            }
        }
        return track
    }

    mutating func counter(_ name: String, unit: String) -> UInt64 {
        let track = nextTrack()
        describe(track, name) { track in track.message(Field.Track.counter) { $0.text(6, unit) } }
        return track
    }

    /// Begins a track for marks.
    mutating func marks(_ name: String) -> UInt64 {
        let track = nextTrack()
        describe(track, name) { _ in }
        return track
    }

    // MARK: Events

    /// The number of a name, which is written to the trace once. Plugins choose the names of events, so their number is
    /// limited: later names become `other`.
    mutating func number(of name: String) -> UInt64 {
        if let known = names[name] ?? (names.count >= Self.mostNames ? Self.otherName : nil) { return known }
        let number = UInt64(names.count + 1)
        names[name] = number
        packet { packet in
            packet.message(Field.Packet.internedData) { Self.name(&$0, Field.Interned.name, number, name) }
        }
        return number
    }

    mutating func begin(
        _ name: UInt64, _ category: Category, on track: UInt64, at time: Int64, frame: Int64?, flows: [UInt64] = []
    ) {
        event(.begin, on: track, at: time) { event in
            event.number(Field.Event.categoryNumber, category.rawValue)
            event.number(Field.Event.nameNumber, name)
            for flow in flows { event.fixed64(Field.Event.flow, flow) }
            if let frame { Self.annotate(&event, .frame, .number(frame)) }
        }
    }

    mutating func end(on track: UInt64, at time: Int64) { event(.end, on: track, at: time) { _ in } }

    mutating func mark(
        _ name: UInt64, _ category: Category, on track: UInt64, at time: Int64, flows: [UInt64] = [],
        _ annotations: [(Annotation, Value)] = []
    ) {
        event(.instant, on: track, at: time) { event in
            event.number(Field.Event.categoryNumber, category.rawValue)
            event.number(Field.Event.nameNumber, name)
            for flow in flows { event.fixed64(Field.Event.flow, flow) }
            for (annotation, value) in annotations { Self.annotate(&event, annotation, value) }
        }
    }

    mutating func level(_ value: Int64, on track: UInt64, at time: Int64) {
        event(.counter, on: track, at: time) { $0.number(Field.Event.counter, value) }
    }

    private static func annotate(_ event: inout ProtoBytes, _ annotation: Annotation, _ value: Value) {
        event.message(Field.Event.annotation) {
            $0.number(1, annotation.rawValue)
            switch value {
            case .number(let number): $0.number(4, number)
            case .text(let text): $0.text(6, text)
            }
        }
    }

    private mutating func event(
        _ type: EventType, on track: UInt64, at time: Int64, _ body: (inout ProtoBytes) -> Void
    ) {
        packet { packet in
            packet.number(Field.Packet.timestamp, time)
            packet.message(Field.Packet.event) { event in
                event.number(Field.Event.type, type.rawValue)
                event.number(Field.Event.track, track)
                body(&event)
            }
        }
    }

    /// - Parameter flags: 1 where no earlier packet counts, 2 where names of earlier packets are used.
    private mutating func packet(flags: UInt64 = 2, _ body: (inout ProtoBytes) -> Void) {
        bytes.message(Field.packet) { packet in
            body(&packet)
            packet.number(Field.Packet.sequence, UInt64(1))
            packet.number(Field.Packet.sequenceFlags, flags)
        }
        count += 1
    }
}
