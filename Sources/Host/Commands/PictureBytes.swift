// SPDX-License-Identifier: Apache-2.0

/// Tells pictures from anything else that a server may send, by their first and last bytes.
///
/// - SeeAlso: ITU-T T.81, B.1.1.3 (SOI, EOI); PNG, third edition, 5.2 and 11.2.4 (IEND).
enum PictureBytes {
    /// Whether these are the bytes of a whole JPEG or PNG file.
    static func isPicture(_ bytes: [UInt8], isPNG: Bool) -> Bool {
        isPNG
            ? bytes.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
                && bytes.suffix(8).starts(with: Array("IEND".utf8))
            : bytes.starts(with: [0xff, 0xd8, 0xff]) && bytes.suffix(2).elementsEqual([0xff, 0xd9])
    }
}
