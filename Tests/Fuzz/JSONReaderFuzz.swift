// SPDX-License-Identifier: Apache-2.0

/// Feeds any bytes to ``JSONReader``: it may refuse them, but what it reads must come back the same from `text()`.
///
/// Built with Core's JSON and Errors folders in one module, without a package: see `make fuzz`.
@c(LLVMFuzzerTestOneInput)
public func fuzzJSONReader(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: bytes, count: count))
    do {
        let node = try JSONReader.read(input, file: "fuzz")
        visit(node)
        comesBack(node, pretty: false)
        comesBack(node, pretty: true)
    } catch let faults as FrameHostErrors {
        precondition(!faults.errors.isEmpty, "a refusal without a fault")
        for fault in faults.errors {
            precondition(fault.place.file == "fuzz", "a fault without a place: \(fault)")
            precondition(!fault.what.isEmpty, "a fault without a sentence: \(fault)")
            precondition(fault.remedy.hasSuffix(".") || fault.remedy.hasSuffix("?"), "no sentence: \(fault)")
        }
    } catch {
        fatalError("not FrameHostErrors: \(error)")
    }
    return 0
}

private func comesBack(_ node: JSONNode, pretty: Bool) {
    let text = node.text(pretty: pretty)
    do {
        let again = try JSONReader.read(Array(text.utf8), file: "fuzz")
        precondition(again.withoutPlaces == node.withoutPlaces, "another tree came back from \(text)")
        // Swift takes canonically equivalent strings as equal; the bytes must be the same as well.
        precondition(Array(again.text(pretty: pretty).utf8) == Array(text.utf8), "another text came back for \(text)")
    } catch {
        fatalError("its own text was refused: \(error)")
    }
}

/// Asks every value for everything; what a number gives must agree.
private func visit(_ node: JSONNode) {
    precondition(node.place.line >= 1 && node.place.column >= 1, "a value without a place")
    if let whole = node.asInt {
        precondition(node.asDouble == Double(whole), "\(whole) and \(String(describing: node.asDouble)) differ")
        precondition(JSONNode.number(whole).asInt == whole, "\(whole) did not come back")
    }
    if let number = node.asDouble {
        precondition(JSONNode.number(number).asDouble == number, "\(number) did not come back")
    }
    for element in node.asArray ?? [] { visit(element) }
    for member in node.asObject ?? [] {
        precondition(node[member.key] != nil, "a member cannot be found: \(member.key)")
        precondition(!JSONPath().appending(member.key).description.isEmpty, "a key without a path")
        visit(member.value)
    }
}
