// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Reads motion from lines of comma-separated values: a heading that names the columns, then a row for each sample.
///
/// Columns: `t` in seconds, `gx`, `gy`, `gz` the rotation rate, `ax`, `ay`, `az` the acceleration, `qx`, `qy`, `qz`,
/// `qw` the attitude, in any order; others are ignored. All cells of a group may be empty: it was not measured then.
/// A sidecar file of Gyroflow (`.gcsv`) has lines before the heading that say its units and axes. Pure: it is given
/// one line after the other.
struct CSVMotion {
    /// What the heading says that samples can contain.
    private(set) var contents: MotionSample.Contents = []
    /// The sensor's axes, where the header of a `.gcsv` names them.
    private(set) var axes: AxisMap?

    private enum Part { case begin, header, rows }
    private var part = Part.begin
    private var headerLines = 0
    private let isTurned: Bool
    private var tick = 1.0
    private var rotationFactor: Double
    private var accelerationFactor: Double
    /// For each column of the file the place in ``names``, or nil for one that is ignored.
    private var columns: [Int?] = []
    /// The numbers of a row, in the order of ``names``.
    private var values: [Double?]

    private static let names = ["t", "gx", "gy", "gz", "ax", "ay", "az", "qx", "qy", "qz", "qw"]
    private static let groups: [(contents: MotionSample.Contents, places: Range<Int>)] = [
        (.rotationRate, 1..<4), (.acceleration, 4..<7), (.attitude, 7..<11),
    ]
    private static let gyroflowLine = Array("GYROFLOW IMU LOG".utf8)

    /// The most bytes of a line.
    static let mostLineBytes = 4096
    private static let mostColumns = 64
    private static let mostHeaderLines = 200

    /// - Parameter isTurned: Whether the axes are known from elsewhere, so that those of a header do not matter.
    init(units: MotionUnits = MotionUnits(), isTurned: Bool = false) {
        self.isTurned = isTurned
        rotationFactor = (units.rotation ?? .radians).factor
        accelerationFactor = (units.acceleration ?? .metres).factor
        values = Array(repeating: nil, count: Self.names.count)
    }

    /// Whether the heading has come.
    var hasHeading: Bool { part == .rows }

    /// Takes the next line, without its line end.
    ///
    /// - Returns: Its sample; nil for a line that has none: the heading, one of the header, an empty one, and a row
    ///   without a measurement.
    mutating func take(_ line: ArraySlice<UInt8>) throws(MotionFault) -> MotionSample? {
        let line = Self.trimmed(line)
        if part == .begin, line == Self.gyroflowLine[...] {
            part = .header
            // Gyroflow's defaults: milliseconds, rad/s, g.
            (tick, rotationFactor, accelerationFactor) = (0.001, 1, AccelerationUnit.gravities.factor)
            return nil
        }
        if line.isEmpty { return nil }
        switch part {
        case .begin: try takeHeading(line)
        case .header: try takeHeader(line)
        case .rows: return try takeRow(line)
        }
        return nil
    }

    // MARK: Before the rows

    private mutating func takeHeader(_ line: ArraySlice<UInt8>) throws(MotionFault) {
        let cells = line.split(separator: UInt8(ascii: ","), maxSplits: 1, omittingEmptySubsequences: false)
        let key = Self.trimmed(cells[0])
        if key == Array("t".utf8)[...] { return try takeHeading(line) }
        headerLines += 1
        guard headerLines <= Self.mostHeaderLines else {
            throw MotionFault(
                "must be the heading, such as t,gx,gy,gz,ax,ay,az: none of the 200 lines of the header before it is one"
            )
        }
        guard cells.count == 2 else { return }
        let value = Self.trimmed(cells[1])
        switch String(decoding: key.prefix(32), as: UTF8.self) {
        case "tscale": tick = try Self.scale(value, "tscale")
        case "gscale": rotationFactor = try Self.scale(value, "gscale")
        case "ascale":
            accelerationFactor = try Self.scale(value, "ascale") * AccelerationUnit.gravities.factor
        case "orientation" where !isTurned:
            guard let map = AxisMap(String(decoding: value.prefix(8), as: UTF8.self)), !map.isMirror else {
                throw MotionFault(
                    "has the orientation \(MotionText.quoted(value)), which must be three right-handed axes such as YxZ; the option 'axes' replaces it"
                )
            }
            axes = map.then(.gyroflow)
        default: break
        }
    }

    private static func scale(_ value: ArraySlice<UInt8>, _ name: String) throws(MotionFault) -> Double {
        guard let number = Double(String(decoding: value.prefix(64), as: UTF8.self)), number.isFinite, number != 0
        else {
            throw MotionFault("has the \(name) \(MotionText.quoted(value)), which must be a number other than 0")
        }
        return number
    }

    private mutating func takeHeading(_ line: ArraySlice<UInt8>) throws(MotionFault) {
        let cells = line.split(
            separator: UInt8(ascii: ","), maxSplits: Self.mostColumns, omittingEmptySubsequences: false)
        guard cells.count <= Self.mostColumns else { throw MotionFault("must have at most 64 columns") }
        let found = cells.map { cell in
            Self.names.firstIndex(of: String(decoding: Self.trimmed(cell).prefix(8), as: UTF8.self).lowercased())
        }
        for (place, name) in Self.names.enumerated() where found.count(where: { $0 == place }) > 1 {
            throw MotionFault("names the column '\(name)' twice")
        }
        guard found.contains(0) else {
            throw MotionFault(
                "must be a heading such as t,gx,gy,gz,ax,ay,az, but is \(MotionText.quoted(line))")
        }
        for group in Self.groups {
            let there = group.places.filter { found.contains($0) }.count
            if there == group.places.count { contents.insert(group.contents) }
            guard there == 0 || there == group.places.count else {
                throw MotionFault(
                    "must name all of the columns \(Self.names[group.places].joined(separator: ", ")), or none")
            }
        }
        guard !contents.isEmpty else {
            throw MotionFault("must name gx, gy and gz, or ax, ay and az, or qx, qy, qz and qw")
        }
        columns = found
        part = .rows
    }

    // MARK: Rows

    private mutating func takeRow(_ line: ArraySlice<UInt8>) throws(MotionFault) -> MotionSample? {
        for place in values.indices { values[place] = nil }
        var begin = line.startIndex
        var column = 0
        while true {
            let end = line[begin...].firstIndex(of: UInt8(ascii: ",")) ?? line.endIndex
            if column < columns.count, let place = columns[column] {
                values[place] = try number(line[begin..<end], place, at: begin - line.startIndex)
            }
            column += 1
            guard end < line.endIndex else { break }
            begin = end + 1
        }
        guard column == columns.count else {
            throw MotionFault(
                "must have \(columns.count == 1 ? "1 column" : "\(columns.count) columns"), as the heading has, but has \(column)"
            )
        }
        guard let time = values[0] else { throw MotionFault("has no time: its column 't' is empty") }
        var sample = MotionSample(time: MotionNumbers.time(seconds: time * tick))
        for group in Self.groups where contents.contains(group.contents) {
            let there = values[group.places].compactMap { $0 }
            if there.isEmpty { continue }
            guard there.count == group.places.count else {
                throw MotionFault(
                    "must have all of \(Self.names[group.places].joined(separator: ", ")), or leave all of them empty")
            }
            fill(&sample, group.contents, there)
        }
        return sample.contents.isEmpty ? nil : sample
    }

    private func fill(_ sample: inout MotionSample, _ part: MotionSample.Contents, _ numbers: [Double]) {
        sample.contents.insert(part)
        switch part {
        case .rotationRate: sample.rotationRate = MotionNumbers.vector(numbers, rotationFactor)
        case .acceleration: sample.acceleration = MotionNumbers.vector(numbers, accelerationFactor)
        default:
            sample.attitude = Quaternion(
                x: Float(numbers[0]), y: Float(numbers[1]), z: Float(numbers[2]), w: Float(numbers[3]))
        }
    }

    /// Nil for an empty cell.
    private func number(_ cell: ArraySlice<UInt8>, _ place: Int, at offset: Int) throws(MotionFault) -> Double? {
        let cell = Self.trimmed(cell)
        if cell.isEmpty { return nil }
        guard cell.count <= 64, let number = Double(String(decoding: cell, as: UTF8.self)) else {
            throw MotionFault(
                "has \(MotionText.quoted(cell)) as '\(Self.names[place])', which must be a number", at: offset)
        }
        return number
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        func isSpace(_ byte: UInt8) -> Bool { byte == 32 || byte == 9 || byte == 13 }
        var bytes = bytes
        while let first = bytes.first, isSpace(first) { bytes.removeFirst() }
        while let last = bytes.last, isSpace(last) { bytes.removeLast() }
        return bytes
    }
}
