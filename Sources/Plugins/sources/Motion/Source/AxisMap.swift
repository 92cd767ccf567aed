// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Which axis of a sensor lies along each axis of the picture: a letter for right, one for down, one for forward; a
/// small letter for the opposite direction.
///
/// `"XYZ"` is a sensor that has the picture's axes. `"Xyz"` is a phone that is held upright and films with its back
/// camera: x right, y up, z toward the person who holds it.
struct AxisMap: Sendable, Equatable {
    /// For each axis of the picture the number of the sensor's, 0...2; the three differ.
    private var axes: SIMD3<Int>
    /// For each axis of the picture 1 or −1.
    private var signs: SIMD3<Float>

    /// The sensor has the picture's axes.
    static let same = AxisMap(axes: SIMD3(0, 1, 2), signs: SIMD3(1, 1, 1))

    /// The axes that Gyroflow and telemetry-parser bring every sensor to: x up, y left, z backward.
    ///
    /// Gyroflow turns a camera's rates (x, y, z) into (−y, x, z) before it integrates them (`imu_integration`), and
    /// turns the result by half a turn about x to reach OpenCV's axes (`frame_transform`).
    static let gyroflow = AxisMap(axes: SIMD3(1, 0, 2), signs: SIMD3(-1, -1, -1))

    private init(axes: SIMD3<Int>, signs: SIMD3<Float>) { (self.axes, self.signs) = (axes, signs) }

    /// Nil unless `text` has each of x, y and z once, in capital or small letters.
    init?(_ text: some StringProtocol) {
        let letters = Array(text.utf8)
        guard letters.count == 3 else { return nil }
        self = .same
        for (index, letter) in letters.enumerated() {
            let small = letter | 0x20
            guard UInt8(ascii: "x")...UInt8(ascii: "z") ~= small else { return nil }
            axes[index] = Int(small - UInt8(ascii: "x"))
            signs[index] = letter == small ? -1 : 1
        }
        guard Set([axes.x, axes.y, axes.z]).count == 3 else { return nil }
    }

    /// The map of a matrix that has one axis in each row: the first entry beyond ±0.5. Nil for a matrix that does not
    /// map axes to axes.
    init?(rows: [Float]) {
        guard rows.count == 9, rows.allSatisfy(\.isFinite) else { return nil }
        self = .same
        for row in 0..<3 {
            guard let column = (0..<3).first(where: { abs(rows[3 * row + $0]) > 0.5 }) else { return nil }
            axes[row] = column
            signs[row] = rows[3 * row + column] < 0 ? -1 : 1
        }
        guard Set([axes.x, axes.y, axes.z]).count == 3 else { return nil }
    }

    /// As it is written: `Xyz`.
    var text: String {
        String(
            decoding: (0..<3).map { UInt8(ascii: signs[$0] < 0 ? "x" : "X") + UInt8(axes[$0]) }, as: UTF8.self)
    }

    /// Whether no rotation turns one system into the other, since one of them is left-handed.
    var isMirror: Bool {
        let isEven = (axes.y + 3 - axes.x) % 3 == 1
        return (signs.x * signs.y * signs.z > 0) != isEven
    }

    /// This map followed by `next`.
    func then(_ next: AxisMap) -> AxisMap {
        var both = AxisMap.same
        for index in 0..<3 {
            both.axes[index] = axes[next.axes[index]]
            both.signs[index] = signs[next.axes[index]] * next.signs[index]
        }
        return both
    }

    /// A sensor's vector along the axes of the picture.
    func picture(_ vector: SIMD3<Float>) -> SIMD3<Float> {
        SIMD3(vector[axes.x], vector[axes.y], vector[axes.z]) * signs
    }

    /// The rotation from the picture's axes to the sensor's. The map must not be a mirror.
    var toSensor: Quaternion {
        // m[row][column] of the matrix that takes a vector of the picture to the sensor: column i has its only part,
        // signs[i], in the row axes[i].
        func m(_ row: Int, _ column: Int) -> Float { axes[column] == row ? signs[column] : 0 }
        let squares: [Float] = [
            1 + m(0, 0) - m(1, 1) - m(2, 2), 1 - m(0, 0) + m(1, 1) - m(2, 2), 1 - m(0, 0) - m(1, 1) + m(2, 2),
            1 + m(0, 0) + m(1, 1) + m(2, 2),
        ]
        // The largest of the four is at least 1, so that the root is not near 0.
        let largest = (0..<4).max { squares[$0] < squares[$1] } ?? 3
        let four = 2 * squares[largest].squareRoot()
        let (xy, xz, yz) = (m(0, 1) + m(1, 0), m(0, 2) + m(2, 0), m(1, 2) + m(2, 1))
        let (wx, wy, wz) = (m(2, 1) - m(1, 2), m(0, 2) - m(2, 0), m(1, 0) - m(0, 1))
        let parts: [Float] =
            switch largest {
            case 0: [four * four / 4, xy, xz, wx]
            case 1: [xy, four * four / 4, yz, wy]
            case 2: [xz, yz, four * four / 4, wz]
            default: [wx, wy, wz, four * four / 4]
            }
        return Quaternion(x: parts[0] / four, y: parts[1] / four, z: parts[2] / four, w: parts[3] / four).normalized
            ?? .identity
    }
}

extension AxisMap: OptionValue {
    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> AxisMap {
        guard let text = node.asString else {
            throw OptionFault("\(node.text()) must be a string with three axes", remedy: Self.remedy)
        }
        guard let map = AxisMap(text) else {
            throw OptionFault("'\(text)' must name each of the axes x, y and z once", remedy: Self.remedy)
        }
        guard !map.isMirror else {
            throw OptionFault(
                "'\(text)' is left-handed, but sensors and pictures have right-handed axes",
                remedy: "Reverse one of the three directions: change the case of one letter.")
        }
        return map
    }

    private static let remedy =
        "Name the sensor's axes that point right, down and forward in the picture, with lowercase letters for opposite directions, such as \"Xyz\"."

    var optionJSON: JSONNode { .string(text) }
    static var optionTypeName: String { "three axes" }
    static var optionSchema: JSONNode { ["type": "string", "pattern": "^[XYZxyz]{3}$"] }
}
