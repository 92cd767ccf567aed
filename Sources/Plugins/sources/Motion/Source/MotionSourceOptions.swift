// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// How fast a file is given.
enum MotionPace: String, OptionChoice {
    /// As fast as the chain takes samples.
    case fast
    /// Each sample at its time.
    case realtime
}

/// Options of ``MotionSource``. Exactly one of `path`, `listen` and `device` is given.
struct MotionSourceOptions: StageOptions {
    @Option(
        help:
            "The file to play: .csv, .gcsv, .jsonl, or .mp4 or .mov with GPMF or CAMM. A relative path starts at the chain file's folder."
    )
    var path: String? = nil

    @Option(
        help:
            "Where to receive JSON datagrams (UDP), as \"address:port\": an address of this machine, in brackets for IPv6 (\"[::1]:5555\"). Anyone who can reach it can send."
    )
    var listen: SocketPlace? = nil

    @Option(help: "The IIO device: its name, or iio:deviceN.") var device: String? = nil

    @Option(
        help:
            "The sensor's axes that point right, down and forward in the picture, small letters for the opposite: Xyz is a phone held upright. Default: what the format says, else XYZ."
    )
    var axes: AxisMap? = nil

    @Option(help: "Unit of rotation rates in CSV and JSON. Default: rad/s, or what the format says.")
    var rotationUnit: RotationUnit? = nil

    @Option(help: "Unit of accelerations in CSV and JSON. Default: m/s2, or what the format says.")
    var accelerationUnit: AccelerationUnit? = nil

    @Option(help: "Files: fast gives samples as fast as the chain takes them, realtime gives each at its time.")
    var pace = MotionPace.fast

    @Option(
        help:
            "IIO: samples per second. A driver uses the nearest rate that the device has, or refuses the rate. Default: the rate that the device is set to.",
        range: 1...10_000, unit: "Hz")
    var rate: Double? = nil

    /// What the numbers mean where the format does not say.
    var units: MotionUnits { MotionUnits(rotation: rotationUnit, acceleration: accelerationUnit) }

    func validate() throws(OptionFault) {
        let origins = [path.map { _ in "path" }, listen.map { _ in "listen" }, device.map { _ in "device" }]
        let given = origins.compactMap { $0 }
        guard given.count == 1 else {
            throw OptionFault(
                given.isEmpty
                    ? "'path', 'listen' or 'device' is missing"
                    : "only one of 'path', 'listen' and 'device' may be set, but \(given.count) are",
                remedy: given.isEmpty
                    ? "Name a file, an address to listen at, or an IIO device: \"path\": \"motion.csv\"."
                    : "Leave all but one of them out.", options: given.isEmpty ? ["path", "listen", "device"] : given)
        }
        if let path { try Self.check(path) }
        if let device, device.isEmpty || device.contains("/") || device.utf8.contains(0) {
            throw OptionFault(
                "'device' must be the name of an IIO device, but is '\(device)'",
                remedy: "Use a name below /sys/bus/iio/devices: \"iio:device0\", or what its file 'name' says.",
                options: ["device"])
        }
        if pace == .realtime, path == nil {
            throw OptionFault(
                "'pace' is only for a file ('path'): a sensor always runs in real time", remedy: "Leave 'pace' out.",
                options: ["pace", "path"])
        }
        if rate != nil, device == nil {
            throw OptionFault(
                "'rate' is only for an IIO device ('device')", remedy: "Leave 'rate' out.", options: ["rate", "device"])
        }
    }

    private static func check(_ path: String) throws(OptionFault) {
        if path.isEmpty || path == "-" || path.utf8.contains(0) {
            let fault = path.isEmpty ? "is empty" : path == "-" ? "is '-'" : "has the character U+0000"
            throw OptionFault(
                "'path' must name a file, but \(fault)", remedy: "Name a file: \"path\": \"motion.csv\".",
                options: ["path"])
        }
        guard MotionFile.Kind(path: path) != nil else {
            throw OptionFault(
                "'path' must end in .csv, .gcsv, .jsonl, .mp4 or .mov, but is '\(path)'",
                remedy: "Use one of these endings: it says how the file is read.", options: ["path"])
        }
    }
}

/// Where datagrams are received.
struct SocketPlace: OptionValue, Equatable {
    /// Without brackets.
    var address: String
    var port: Int
    var isIPv6: Bool { address.utf8.contains(UInt8(ascii: ":")) }
    var text: String { isIPv6 ? "[\(address)]:\(port)" : "\(address):\(port)" }

    private static let remedy =
        "Write an address of this machine and a port, such as \"127.0.0.1:5555\" or \"[::1]:5555\"."

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> SocketPlace {
        guard let text = node.asString else {
            throw OptionFault("\(node.text()) must be a numeric address with a port", remedy: remedy)
        }
        let fault = OptionFault("'\(text)' must be a numeric address with a port", remedy: remedy)
        guard let colon = text.lastIndex(of: ":") else { throw fault }
        let digits = text[text.index(after: colon)...]
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }) else { throw fault }
        guard let port = Int(digits), 1...65535 ~= port else {
            throw OptionFault("the port in '\(text)' must be from 1 to 65535", remedy: remedy)
        }
        var address = String(text[..<colon])
        if address.hasPrefix("["), address.hasSuffix("]") {
            address = String(address.dropFirst().dropLast())
            guard address.contains(":") else { throw fault }
        } else if address.contains(":") {
            throw OptionFault("the IPv6 address in '\(text)' must be in brackets", remedy: remedy)
        }
        guard !address.isEmpty, !address.utf8.contains(0) else { throw fault }
        let place = SocketPlace(address: address, port: port)
        guard place.isNumeric else {
            throw OptionFault(
                "the address in '\(text)' must be an IP address, not a name and without a zone", remedy: remedy)
        }
        return place
    }

    var optionJSON: JSONNode { .string(text) }
    static var optionTypeName: String { "address:port" }
    static var optionSchema: JSONNode { ["type": "string", "pattern": "^.+:[0-9]{1,5}$"] }
}
