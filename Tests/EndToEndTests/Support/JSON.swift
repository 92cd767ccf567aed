// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A JSON value as Foundation's reader (not ours) reads it.
struct JSON {
    let value: Any?

    init(_ value: Any?) { self.value = value }

    init(parsing text: String) throws {
        value = try JSONSerialization.jsonObject(with: Data(text.utf8), options: [.fragmentsAllowed])
    }

    init(file: String) throws {
        value = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: file)))
    }

    subscript(key: String) -> JSON { JSON((value as? [String: Any])?[key]) }
    subscript(index: Int) -> JSON {
        let list = value as? [Any] ?? []
        return JSON(list.indices.contains(index) ? list[index] : nil)
    }

    var list: [JSON] { (value as? [Any] ?? []).map { JSON($0) } }
    var keys: Set<String> { Set((value as? [String: Any] ?? [:]).keys) }
    var string: String? { value as? String }
    var int: Int? { (value as? NSNumber)?.intValue }
    var double: Double? { (value as? NSNumber)?.doubleValue }
    var bool: Bool? { value as? Bool }
    var isNull: Bool { value is NSNull }

    /// The element whose `key` is `wanted`.
    func first(_ key: String, _ wanted: String) -> JSON { list.first { $0[key].string == wanted } ?? JSON(nil) }
}
