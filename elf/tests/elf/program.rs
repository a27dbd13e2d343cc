//! Makes small ELF programs for tests.

/// Returns a program with this interpreter and these libraries.
pub(crate) fn program(interpreter: Option<&str>, libraries: &[&str]) -> Vec<u8> {
    program_of_versions(interpreter, libraries, &[])
}

/// Returns a program with this interpreter and these libraries. Each entry of `versions` names a library and the symbol
/// versions that the program needs from it. The program consists of a header, three program headers, the dynamic
/// section, its strings and its versions, all in one segment.
pub(crate) fn program_of_versions(
    interpreter: Option<&str>,
    libraries: &[&str],
    versions: &[(&str, &[&str])],
) -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const DYNAMIC: usize = 64 + 3 * 56;
    /// Length in bytes of an entry of the table of versions. Entries of libraries and of versions are equally long.
    const ENTRY: u32 = 16;
    let strings_at = DYNAMIC + (libraries.len() + 2 + usize::from(!versions.is_empty())) * 16;
    let mut strings = vec![0];
    let mut add = |text: &str| {
        let at = strings.len();
        strings.extend(text.bytes().chain([0]));
        at
    };
    let interpreter = interpreter.map(|text| ((add(text) + strings_at) as u64, text.len() as u64 + 1));
    let mut dynamic: Vec<[u64; 2]> = libraries.iter().map(|library| [1, add(library) as u64]).collect();
    dynamic.push([5, BASE + strings_at as u64]);
    let mut table: Vec<u8> = Vec::new();
    for (number, (library, names)) in versions.iter().enumerate() {
        let next = if number + 1 == versions.len() { 0 } else { ENTRY * (1 + names.len() as u32) };
        table.extend([1, names.len() as u16].iter().flat_map(|half| half.to_le_bytes()));
        table.extend([add(library) as u32, ENTRY, next].iter().flat_map(|word| word.to_le_bytes()));
        for (number, name) in names.iter().enumerate() {
            let next = if number + 1 == names.len() { 0 } else { ENTRY };
            table.extend([0, 0, add(name) as u32, next].iter().flat_map(|word| word.to_le_bytes()));
        }
    }
    if !versions.is_empty() {
        dynamic.push([0x6fff_fffe, BASE + (strings_at + strings.len()) as u64]);
    }
    dynamic.push([0, 0]);
    let total = (strings_at + strings.len() + table.len()) as u64;

    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([2_u16, 62].iter().flat_map(|half| half.to_le_bytes()));
    file.extend(1_u32.to_le_bytes());
    file.extend([BASE, 64, 0].iter().flat_map(|long| long.to_le_bytes()));
    file.extend(0_u32.to_le_bytes());
    file.extend([64_u16, 56, 3, 0, 0, 0].iter().flat_map(|half| half.to_le_bytes()));
    let dynamic_bytes = (dynamic.len() * 16) as u64;
    let (kind, (interpreter_at, interpreter_bytes)) =
        (if interpreter.is_some() { 3 } else { 0 }, interpreter.unwrap_or_default());
    for (kind, at, bytes) in
        [(1_u32, 0, total), (kind, interpreter_at, interpreter_bytes), (2, DYNAMIC as u64, dynamic_bytes)]
    {
        file.extend([kind, 0].iter().flat_map(|word| word.to_le_bytes()));
        file.extend([at, BASE + at, 0, bytes, bytes, 0].iter().flat_map(|long| long.to_le_bytes()));
    }
    file.extend(dynamic.iter().flatten().flat_map(|long| long.to_le_bytes()));
    file.extend(strings);
    file.extend(table);
    file
}
