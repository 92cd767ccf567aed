// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Reads motion from JSON: a line of a file, or a datagram. Pure.
///
/// | shape | from |
/// |---|---|
/// | `{"t":0.5,"gyro":[x,y,z],"accel":[x,y,z],"attitude":[x,y,z,w]}` | senders made for framehost; any of the three |
/// | `{"type":"android.sensor.gyroscope","timestamp":ns,"values":[x,y,z]}` | SensorServer |
/// | `{"payload":[{"name":"gyroscope","time":ns,"values":{"x":…}}]}`, or the list alone | Sensor Logger |
/// | `{"sensordata":{"gyro":{"x":…},"accel":{…},"quaternion":{…}}}` | ZIG SIM |
enum JSONMotion {
    /// A sample with the sender's stamp.
    struct Reading: Equatable {
        /// When it was measured, in nanoseconds of the sender's clock; nil where the sender does not say. The sample's
        /// own time is the same, or 0.
        var stamp: Int64?
        var sample: MotionSample
    }

    /// The most bytes of a text: those of the largest datagram.
    static let mostBytes = 65_536
    /// The most samples of a text.
    static let mostReadings = 4096

    /// The readings in `bytes`, in their order; empty where they are of another sensor.
    static func readings(in bytes: ArraySlice<UInt8>, units: MotionUnits = MotionUnits()) throws(MotionFault)
        -> [Reading]
    {
        guard bytes.count <= mostBytes else { throw MotionFault("must be at most \(mostBytes) bytes of JSON") }
        var limits = JSONReader.Limits()
        limits.depth = 8
        limits.nodes = 65_536
        limits.faults = 1
        let node: JSONNode
        do {
            node = try JSONReader.read(Array(bytes), file: "", limits: limits)
        } catch {
            throw MotionFault(syntax(error, bytes))
        }
        var found: [Reading] = []
        if let list = node.asArray {
            if list.contains(where: { $0["name"] != nil }) {
                found = logged(list, units)
            } else {
                for element in list.prefix(mostReadings) { found += try single(element, units) }
            }
        } else if let payload = node["payload"] {
            guard let list = payload.asArray else {
                throw MotionFault("has \(shown(payload)) as 'payload', which must be a list")
            }
            found = logged(list, units)
        } else {
            found = try single(node, units)
        }
        return Array(found.prefix(mostReadings))
    }

    private static func syntax(_ error: any Error, _ bytes: ArraySlice<UInt8>) -> String {
        let fault = (error as? FrameHostErrors)?.errors.first ?? error as? FrameHostError
        return "must be JSON, but is \(MotionText.quoted(bytes))" + (fault.map { " (\($0.what))" } ?? "")
    }

    private static let expected =
        "must have 'gyro', 'accel' or 'attitude', or be written as by SensorServer, Sensor Logger or ZIG SIM"

    private static func single(_ node: JSONNode, _ units: MotionUnits) throws(MotionFault) -> [Reading] {
        guard node.asObject != nil else { throw MotionFault("must have JSON objects, but has \(node.kindName)") }
        if let values = node["values"] { return try served(node, values, units) }
        if let data = node["sensordata"] { return zigSim(data, units) }
        return [try plain(node, units)]
    }

    // MARK: The shapes

    private static func plain(_ node: JSONNode, _ units: MotionUnits) throws(MotionFault) -> Reading {
        var reading = Reading(stamp: nil, sample: MotionSample(time: .zero))
        if let time = node["t"] {
            guard let seconds = time.asDouble else {
                throw MotionFault("has \(shown(time)) as 't', which must be a number of seconds")
            }
            reading.sample.time = MotionNumbers.time(seconds: seconds)
            reading.stamp = reading.sample.time.nanoseconds
        }
        for (key, part, count) in [
            ("gyro", MotionSample.Contents.rotationRate, 3), ("accel", .acceleration, 3), ("attitude", .attitude, 4),
        ] {
            guard let value = node[key], value != .null else { continue }
            guard let numbers = numbers(value, count) else {
                throw MotionFault("has \(shown(value)) as '\(key)', which must be \(count) numbers")
            }
            set(&reading.sample, part, numbers, units)
        }
        guard !reading.sample.contents.isEmpty else { throw MotionFault(expected) }
        return reading
    }

    /// SensorServer: the phone's nanoseconds since it was started, and Android's units.
    private static func served(_ node: JSONNode, _ values: JSONNode, _ units: MotionUnits) throws(MotionFault)
        -> [Reading]
    {
        guard let type = node["type"]?.asString else {
            throw MotionFault("has 'values', but no string 'type' that says of which sensor")
        }
        let word = type.split(separator: ".").last.map(String.init) ?? type
        guard let part = android[word] else { return [] }
        guard var numbers = values.asArray.map({ $0.prefix(5).compactMap(\.asDouble) }), numbers.count >= 3 else {
            throw MotionFault("has \(shown(values)) as 'values', which must be a list of at least 3 numbers")
        }
        if part == .attitude, numbers.count == 3 {
            // The fourth may be missing; a rotation vector has the length 1.
            let rest = 1 - numbers.reduce(0) { $0 + $1 * $1 }
            numbers.append(rest > 0 ? rest.squareRoot() : 0)
        }
        return [reading(part, numbers, stamp(node["timestamp"]), units)]
    }

    private static let android: [String: MotionSample.Contents] = [
        "gyroscope": .rotationRate, "accelerometer": .acceleration, "rotation_vector": .attitude,
        "game_rotation_vector": .attitude,
    ]

    /// Sensor Logger: a batch, in nanoseconds since 1970. Its `accelerometer` is without gravity, which has an entry of
    /// its own with the same time.
    private static func logged(_ list: [JSONNode], _ units: MotionUnits) -> [Reading] {
        var found: [Reading] = []
        var gravity: [Int64: SIMD3<Float>] = [:]
        let entries = list.prefix(mostReadings)
        for entry in entries where entry["name"]?.asString?.lowercased() == "gravity" {
            guard let time = stamp(entry["time"]), let numbers = xyz(entry["values"]) else { continue }
            gravity[time] = MotionNumbers.vector(numbers, (units.acceleration ?? .metres).factor)
        }
        for entry in entries {
            guard let name = entry["name"]?.asString?.lowercased(), let values = entry["values"] else { continue }
            let time = stamp(entry["time"])
            switch name {
            case "gyroscope", "gyroscopeuncalibrated":
                if let numbers = xyz(values) { found.append(reading(.rotationRate, numbers, time, units)) }
            case "totalacceleration", "accelerometeruncalibrated":
                if let numbers = xyz(values) { found.append(reading(.acceleration, numbers, time, units)) }
            case "accelerometer":
                guard let numbers = xyz(values), let time, let down = gravity[time] else { continue }
                var sum = reading(.acceleration, numbers, time, units)
                sum.sample.acceleration += down
                found.append(sum)
            case "orientation":
                if let numbers = named(values, ["qx", "qy", "qz", "qw"]) {
                    found.append(reading(.attitude, numbers, time, units))
                }
            default: continue
            }
        }
        return found
    }

    /// ZIG SIM: no usable time; accelerations in g.
    private static func zigSim(_ data: JSONNode, _ units: MotionUnits) -> [Reading] {
        var sample = MotionSample(time: .zero)
        if let numbers = xyz(data["gyro"]) { set(&sample, .rotationRate, numbers, units) }
        if let numbers = xyz(data["accel"]) {
            var units = units
            units.acceleration = units.acceleration ?? .gravities
            set(&sample, .acceleration, numbers, units)
        }
        if let numbers = named(data["quaternion"], ["x", "y", "z", "w"]) { set(&sample, .attitude, numbers, units) }
        return sample.contents.isEmpty ? [] : [Reading(stamp: nil, sample: sample)]
    }

    // MARK: Values

    private static func reading(
        _ part: MotionSample.Contents, _ numbers: [Double], _ stamp: Int64?, _ units: MotionUnits
    ) -> Reading {
        var sample = MotionSample(time: MediaTime(nanoseconds: stamp ?? 0))
        set(&sample, part, numbers, units)
        return Reading(stamp: stamp.map { MediaTime(nanoseconds: $0).nanoseconds }, sample: sample)
    }

    private static func set(
        _ sample: inout MotionSample, _ part: MotionSample.Contents, _ numbers: [Double], _ units: MotionUnits
    ) {
        sample.contents.insert(part)
        switch part {
        case .rotationRate:
            sample.rotationRate = MotionNumbers.vector(numbers, (units.rotation ?? .radians).factor)
        case .acceleration:
            sample.acceleration = MotionNumbers.vector(numbers, (units.acceleration ?? .metres).factor)
        default:
            guard numbers.count >= 4 else { return sample.attitude = Quaternion(x: 0, y: 0, z: 0, w: 0) }
            sample.attitude = Quaternion(
                x: Float(numbers[0]), y: Float(numbers[1]), z: Float(numbers[2]), w: Float(numbers[3]))
        }
    }

    /// A list of `count` numbers, or an object with x, y, z and for the fourth w.
    private static func numbers(_ node: JSONNode, _ count: Int) -> [Double]? {
        guard let list = node.asArray else { return named(node, Array(["x", "y", "z", "w"].prefix(count))) }
        guard list.count == count else { return nil }
        let numbers = list.compactMap(\.asDouble)
        return numbers.count == count ? numbers : nil
    }

    private static func xyz(_ node: JSONNode?) -> [Double]? { named(node, ["x", "y", "z"]) }

    private static func named(_ node: JSONNode?, _ names: [String]) -> [Double]? {
        let numbers = names.compactMap { node?[$0]?.asDouble }
        return numbers.count == names.count ? numbers : nil
    }

    /// Whole nanoseconds, as a number or, since they are beyond the whole numbers of JavaScript, as a string.
    private static func stamp(_ node: JSONNode?) -> Int64? {
        guard let node else { return nil }
        let number = node.asInt ?? node.asString.flatMap { Int($0) }
        return number.map { MediaTime(nanoseconds: Int64($0)).nanoseconds }
    }

    private static func shown(_ node: JSONNode) -> String { MotionText.quoted(Array(node.text().utf8)) }
}
