// SPDX-License-Identifier: Apache-2.0

/// The loudspeakers that the channels of a sound are for.
///
/// Channels stand in the order of the bits of ``mask``, the lowest first.
public struct ChannelLayout: Sendable, Hashable, CustomStringConvertible {
    /// One bit for each position, as in WAVEFORMATEXTENSIBLE (`dwChannelMask`) and libavutil (`AV_CH_…`); 0 where the
    /// positions are not known.
    public let mask: UInt64

    /// A layout of these positions.
    ///
    /// - Parameter mask: One bit for each; 0 where they are not known.
    public init(mask: UInt64) { self.mask = mask }

    /// The layout that a number of channels has where nothing else is said: FFmpeg's. Most numbers above eight have none.
    ///
    /// - Parameter count: How many channels there are.
    public init(usualFor count: Int) { mask = Self.table.first { $0.mask.nonzeroBitCount == count }?.mask ?? 0 }

    /// A layout by FFmpeg's name, such as `stereo`, `quad` or `5.1(side)`; nil for any other.
    ///
    /// - Parameter name: One of ``names``.
    public init?(_ name: String) {
        guard let found = Self.table.first(where: { $0.name == name }) else { return nil }
        mask = found.mask
    }

    /// The names of layouts, by their numbers of channels.
    public static var names: [String] { table.map(\.name) }

    /// How many positions there are; 0 where they are not known.
    public var channelCount: Int { mask.nonzeroBitCount }

    /// The bits of the channels' positions, in the order of the channels.
    public var positions: [Int] { (0..<64).filter { mask & (1 << UInt64($0)) != 0 } }

    /// FFmpeg's name, or those of the positions: `quad`, `FL+FR+TC`.
    public var description: String {
        if let known = Self.table.first(where: { $0.mask == mask }) { return known.name }
        guard mask != 0 else { return "unknown positions" }
        return positions.map { $0 < Self.positionNames.count ? Self.positionNames[$0] : "position \($0)" }
            .joined(separator: "+")
    }

    /// As libavutil's channel_layout.c has them; the first of each number is its usual one.
    private static let table: [(name: String, mask: UInt64)] = [
        ("mono", 0x4), ("stereo", 0x3), ("2.1", 0xb), ("3.0", 0x7), ("3.0(back)", 0x103), ("4.0", 0x107),
        ("quad", 0x33), ("quad(side)", 0x603), ("3.1", 0xf), ("5.0", 0x37), ("5.0(side)", 0x607), ("4.1", 0x10f),
        ("5.1", 0x3f), ("5.1(side)", 0x60f), ("6.0", 0x707), ("6.0(front)", 0x6c3), ("hexagonal", 0x137),
        ("6.1", 0x70f), ("6.1(back)", 0x13f), ("6.1(front)", 0x6cb), ("7.0", 0x637), ("7.0(front)", 0x6c7),
        ("7.1", 0x63f), ("7.1(wide)", 0xff), ("7.1(wide-side)", 0x6cf), ("octagonal", 0x737),
        ("hexadecagonal", 0x1_8003_f737), ("22.2", 0x1f8_0003_ffff),
    ]

    private static let positionNames = [
        "FL", "FR", "FC", "LFE", "BL", "BR", "FLC", "FRC", "BC", "SL", "SR", "TC", "TFL", "TFC", "TFR", "TBL", "TBC",
        "TBR",
    ]
}
