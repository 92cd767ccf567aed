// SPDX-License-Identifier: Apache-2.0

import Foundation

/// How far sound and pictures are apart in what ffmpeg plays: flashes and beeps that begin at the same moments.
///
/// A flash begins with the first picture whose mean luma is above 128. A beep begins where a tone of 1 kHz has half its
/// full level, found by complex demodulation and a box of 2 ms. Exact containers are measured to 0.02 ms, Matroska to its
/// ticks of a millisecond.
struct LipSync {
    /// When each flash begins, in seconds.
    let flashes: [Double]
    /// When each beep begins, in seconds.
    let beeps: [Double]

    /// Sound minus picture of each flash that has a beep within 0.45 s, in milliseconds: above 0 where sound is late.
    var offsets: [Double] { offsetsOfFlashes(after: -.infinity) }

    func offsetsOfFlashes(after begin: Double) -> [Double] {
        flashes.filter { $0 > begin }.compactMap { flash in
            beeps.map { ($0 - flash) * 1000 }.min { abs($0) < abs($1) }.flatMap { abs($0) < 450 ? $0 : nil }
        }
    }

    /// - Parameter input: A file or an address, and ffmpeg's options before it.
    init(_ input: String..., seconds: Double? = nil) throws {
        let limit = seconds.map { ["-t", "\($0)"] } ?? []
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("lip-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let samples = folder.appendingPathComponent("samples").path
        let outcome = try Tool.ffmpeg.run(
            ["-nostdin", "-hide_banner", "-v", "info", "-copyts"] + input + limit + [
                "-map", "0:v:0", "-vf", "scale=64:48,showinfo", "-fps_mode", "passthrough", "-f", "null", "-", "-map",
                "0:a:0",
            ] + limit + ["-af", "aformat=flt:channel_layouts=mono,ashowinfo", "-f", "f32le", samples])
        guard outcome.status == 0 else { throw TestFault("ffmpeg: \(outcome.error.suffix(2000))") }
        flashes = Self.flashes(outcome.errorLines)
        let data = try Data(contentsOf: URL(fileURLWithPath: samples))
        let values = data.withUnsafeBytes { Array($0.bindMemory(to: Float.self)) }
        beeps = Self.beeps(values, Self.blocks(outcome.errorLines))
    }

    private static func number(_ line: String, after key: String) -> Double? {
        guard let range = line.range(of: key) else { return nil }
        return Double(
            line[range.upperBound...].drop { $0 == " " }.prefix { $0.isNumber || $0 == "." || $0 == "-" })
    }

    private static func flashes(_ lines: [String]) -> [Double] {
        var found: [Double] = []
        var wasWhite = false
        for line in lines where line.contains("Parsed_showinfo") {
            guard let time = number(line, after: "pts_time:"), let luma = number(line, after: "mean:[") else {
                continue
            }
            if luma > 128, !wasWhite { found.append(time) }
            wasWhite = luma > 128
        }
        return found
    }

    private struct Block {
        var time: Double
        var rate: Double
        var count: Int
    }

    private static func blocks(_ lines: [String]) -> [Block] {
        lines.compactMap { line in
            guard line.contains("ashowinfo"), let time = number(line, after: "pts_time:"),
                let rate = number(line, after: "rate:"), let count = number(line, after: "nb_samples:")
            else { return nil }
            return Block(time: time, rate: rate, count: Int(count))
        }
    }

    private static func beeps(_ values: [Float], _ blocks: [Block]) -> [Double] {
        guard let rate = blocks.first?.rate, values.count > Int(rate / 100) else { return [] }
        let half = Int(rate / 1000)
        var (real, imaginary) = (
            [Double](repeating: 0, count: values.count + 1), [Double](repeating: 0, count: values.count + 1)
        )
        for (index, value) in values.enumerated() {
            let phase = -2 * Double.pi * 1000 * Double(index) / rate
            real[index + 1] = real[index] + Double(value) * cos(phase)
            imaginary[index + 1] = imaginary[index] + Double(value) * sin(phase)
        }
        let levels = values.indices.map { index -> Double in
            let (low, high) = (max(index - half, 0), min(index + half, values.count))
            return hypot(real[high] - real[low], imaginary[high] - imaginary[low])
        }
        let threshold = (levels.max() ?? 0) / 2
        guard threshold > 0 else { return [] }
        var begins: [Int] = [0]
        for block in blocks { begins.append(begins.last! + block.count) }
        var found: [Double] = []
        var last = -values.count
        var block = 0
        for index in 1..<levels.count where levels[index] >= threshold && levels[index - 1] < threshold {
            guard index - last >= Int(rate * 0.3) else { continue }
            last = index
            let place = Double(index - 1) + (threshold - levels[index - 1]) / (levels[index] - levels[index - 1])
            while block + 1 < blocks.count, Double(begins[block + 1]) <= place { block += 1 }
            found.append(blocks[block].time + (place - Double(begins[block])) / rate)
        }
        return found
    }
}
