// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Finds the font file.
package enum FontFile {
    /// Tried in this order when no font is named: DejaVu Sans where Debian, Fedora and Arch put it, then fonts of the
    /// same kind.
    package static let usual = [
        "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
        "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf",
        "/usr/share/fonts/TTF/DejaVuSans.ttf",
        "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf",
        "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
        "/usr/share/fonts/truetype/freefont/FreeSans.ttf",
    ]

    /// - Parameter named: An absolute path; nil for the first of `usual` that is there.
    /// - Throws: ``FrameHostError`` `.unavailable`.
    package static func path(_ named: String?, usual: [String] = usual) throws -> String {
        if let named {
            guard access(named, R_OK) == 0 else {
                let reason = String(cString: strerror(errno))
                throw FrameHostError(
                    .unavailable, place: "font", what: "\(named) cannot be read: \(reason)",
                    remedy: "Check the path, or leave 'font' out for the default font.")
            }
            return named
        }
        guard let found = usual.first(where: { access($0, R_OK) == 0 }) else {
            throw FrameHostError(
                .unavailable, place: "font", what: "no font was found",
                remedy: "Install fonts-dejavu-core, or name a font file with 'font'.",
                cause: "Looked for " + usual.joined(separator: ", "))
        }
        return found
    }
}
