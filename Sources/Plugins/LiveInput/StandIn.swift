import FrameCore

/// What is shown while a source is away: a copy of a late picture, or one colour. Memory is made once.
package final class StandIn {
    private let format: VideoFormat
    private let color: RGBColor
    /// Planes without padding, one after the other; empty where no picture is kept.
    private var bytes: [UInt8]
    private var hasPicture = false
    private var copiedAt = Int64.min
    /// A picture is copied each second, not each time: nanoseconds.
    private static let pause: Int64 = 1_000_000_000

    /// Bytes it takes.
    package static func bytes(_ format: VideoFormat) -> Int {
        (0..<format.pixelFormat.planeCount).reduce(0) {
            $0 + format.pixelFormat.rowBytes(plane: $1, width: format.width)
                * format.pixelFormat.rows(plane: $1, height: format.height)
        }
    }

    package init(_ format: VideoFormat, color: RGBColor, keepsPicture: Bool) {
        self.format = format
        self.color = color
        bytes = keepsPicture ? [UInt8](repeating: 0, count: Self.bytes(format)) : []
    }

    /// [stage thread] Keeps the picture when the one that is kept has become old.
    package func look(at frame: borrowing Frame, now: Int64) {
        guard !bytes.isEmpty, !hasPicture || now - copiedAt >= Self.pause else { return }
        copiedAt = now
        hasPicture = true
        bytes.withUnsafeMutableBufferPointer { buffer in
            var target = buffer.baseAddress!
            for index in 0..<frame.planeCount {
                frame.withPlane(index) { plane in
                    for y in 0..<plane.height {
                        target.update(from: plane.baseAddress + y * plane.strideBytes, count: plane.rowBytes)
                        target += plane.rowBytes
                    }
                }
            }
        }
    }

    /// [stage thread]
    package func paint(_ frame: inout Frame) {
        frame.isSubstitute = true
        guard hasPicture else { return fill(&frame) }
        bytes.withUnsafeBufferPointer { buffer in
            var source = buffer.baseAddress!
            for index in 0..<frame.planeCount {
                frame.withMutablePlane(index) { plane in
                    for y in 0..<plane.height {
                        (plane.baseAddress + y * plane.strideBytes).update(from: source, count: plane.rowBytes)
                        source += plane.rowBytes
                    }
                }
            }
        }
    }

    private func fill(_ frame: inout Frame) {
        let (luma, u, v) = Self.samples(color, format.color)
        let patterns: [[UInt8]] =
            switch format.pixelFormat {
            case .nv12: [[luma], [u, v]]
            case .yuyv: [[luma, u, luma, v]]
            default: [[luma], [u], [v]]
            }
        for index in 0..<frame.planeCount {
            let pattern = patterns[min(index, patterns.count - 1)]
            frame.withMutablePlane(index) { plane in
                for y in 0..<plane.height {
                    let row = plane.row(y)
                    for x in row.indices { row[x] = pattern[x % pattern.count] }
                }
            }
        }
    }

    /// ISO/IEC 23091-2, equations for MatrixCoefficients 1 and 6.
    private static func samples(_ color: RGBColor, _ target: ColorDescription) -> (UInt8, UInt8, UInt8) {
        let (red, green, blue) = (Double(color.red) / 255, Double(color.green) / 255, Double(color.blue) / 255)
        let (kr, kb) = target.matrix == 1 ? (0.2126, 0.0722) : (0.299, 0.114)
        let luma = kr * red + (1 - kr - kb) * green + kb * blue
        let (cb, cr) = ((blue - luma) / (2 * (1 - kb)), (red - luma) / (2 * (1 - kr)))
        func code(_ value: Double) -> UInt8 { UInt8(min(max(value.rounded(), 0), 255)) }
        return target.range == .full
            ? (code(255 * luma), code(128 + 255 * cb), code(128 + 255 * cr))
            : (code(16 + 219 * luma), code(128 + 224 * cb), code(128 + 224 * cr))
    }
}
