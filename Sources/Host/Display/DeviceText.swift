// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A device as people and programs read it.
struct DeviceText {
    private let device: StageDevice
    private let stage: String

    init(_ device: StageDevice, of stage: String) {
        self.device = device
        self.stage = stage
    }

    var text: String {
        var lines = ["\(device.path)  \(device.name.printable())  (\(stage))"]
        let facts =
            device.stableIDs.map { ["device", "\"\($0)\""] } + device.facts.map { [$0.name, $0.value.printable()] }
        if !facts.isEmpty { lines.append(Terminal.table(facts)) }
        if !device.fault.isEmpty { lines.append("  \(device.fault)") }
        if !device.formats.isEmpty {
            lines += [
                "", Terminal.table([["format", "size", "frames per second"]] + device.formats.flatMap(Self.rows)),
            ]
        }
        guard !device.controls.isEmpty else { return lines.joined(separator: "\n") }
        lines += ["\nValues of \"\(device.option)\"", StageText.table(device.controls)]
        return lines.joined(separator: "\n")
    }

    private static func rows(_ format: StageDevice.Format) -> [[String]] {
        let title = "\(format.name) (\(format.title))"
        guard !format.sizes.isEmpty else { return [[title, "", ""]] }
        return format.sizes.enumerated().map { index, size in
            let rates = size.rates.map { short($0) }
            let text = size.isRange ? rates.reversed().joined(separator: " to ") : rates.joined(separator: ", ")
            return [index == 0 ? title : "", "\(size.width)x\(size.height)", text.isEmpty ? "not known" : text]
        }
    }

    /// Rounded to two places: 12.5, 29.97.
    private static func short(_ rate: Rational) -> String {
        let hundredths = (rate.value * 100).rounded() / 100
        return hundredths == hundredths.rounded() ? "\(Int(hundredths))" : "\(hundredths)"
    }

    var json: JSONNode {
        .object([
            ("stage", .string(stage)), ("name", .string(device.name)), ("path", .string(device.path)),
            ("stableIDs", .array(device.stableIDs.map { .string($0) })),
            ("facts", .object(device.facts.map { ($0.name, .string($0.value)) })),
            ("fault", device.fault.isEmpty ? .null : .string(device.fault)),
            (
                "formats",
                .array(
                    device.formats.map { format in
                        .object([
                            ("format", format.name.isEmpty ? .null : .string(format.name)),
                            ("title", .string(format.title)), ("sizes", .array(format.sizes.map(Self.json))),
                        ])
                    })
            ),
            ("option", .string(device.option)), ("controls", .array(device.controls.map(StageText.json))),
        ])
    }

    private static func json(_ size: StageDevice.Size) -> JSONNode {
        .object([
            ("size", .string("\(size.width)x\(size.height)")), ("rates", .array(size.rates.map { .number($0.value) })),
            ("anyRateBetween", .bool(size.isRange)),
        ])
    }
}
