//! Reads cells of columns of any type as text.

use std::borrow::Cow;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_schema::{DataType, TimeUnit};

use crate::time;

/// A value that is not null.
pub(crate) struct Cell<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Whether malformed bytes were replaced.
    pub(crate) is_malformed: bool,
}

impl<'a> From<&'a [u8]> for Cell<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let is_malformed = matches!(text, Cow::Owned(_));
        Cell { text, is_malformed }
    }
}

/// A value of a column in the form in which the table readers use it as an ID. None if it is null
/// or of a type without text.
#[must_use]
pub fn cell_text(array: &dyn Array, i: usize) -> Option<String> {
    cell(array, i).map(|cell| cell.text.into_owned())
}

/// Whether [`cell`] can read a type.
pub(crate) fn is_readable(kind: &DataType) -> bool {
    use DataType::*;
    match kind {
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView => true,
        Dictionary(_, value) => is_readable(value),
        Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => true,
        Boolean | Date32 | Date64 | Timestamp(..) => true,
        other => other.is_integer() || other.is_floating(),
    }
}

/// Row `i` of a column as text; none if it is null or of a type without text.
///
/// Numbers are written in full, times as ISO 8601 in UTC with as many decimals as needed.
pub(crate) fn cell(array: &dyn Array, i: usize) -> Option<Cell<'_>> {
    if array.is_null(i) {
        return None;
    }
    let bytes = match array.data_type() {
        DataType::Utf8 => array.as_string_opt::<i32>()?.value(i).as_bytes(),
        DataType::LargeUtf8 => array.as_string_opt::<i64>()?.value(i).as_bytes(),
        DataType::Utf8View => array.as_string_view_opt()?.value(i).as_bytes(),
        DataType::Binary => array.as_binary_opt::<i32>()?.value(i),
        DataType::LargeBinary => array.as_binary_opt::<i64>()?.value(i),
        DataType::BinaryView => array.as_binary_view_opt()?.value(i),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary_opt()?;
            let key = number(dictionary.keys(), i)?.parse().ok()?;
            let values = dictionary.values();
            return (key < values.len()).then(|| cell(values.as_ref(), key))?;
        }
        _ => {
            let text = Cow::Owned(number(array, i).or_else(|| moment(array, i))?);
            let is_malformed = false;
            return Some(Cell { text, is_malformed });
        }
    };
    Some(Cell::from(bytes))
}

macro_rules! value {
    ($array:ident, $i:ident, $type:ty) => {
        $array.as_primitive_opt::<$type>()?.value($i)
    };
}

fn number(array: &dyn Array, i: usize) -> Option<String> {
    macro_rules! decimal {
        ($type:ty) => {
            array.as_primitive_opt::<$type>()?.value_as_string(i)
        };
    }
    Some(match array.data_type() {
        DataType::Int8 => value!(array, i, Int8Type).to_string(),
        DataType::Int16 => value!(array, i, Int16Type).to_string(),
        DataType::Int32 => value!(array, i, Int32Type).to_string(),
        DataType::Int64 => value!(array, i, Int64Type).to_string(),
        DataType::UInt8 => value!(array, i, UInt8Type).to_string(),
        DataType::UInt16 => value!(array, i, UInt16Type).to_string(),
        DataType::UInt32 => value!(array, i, UInt32Type).to_string(),
        DataType::UInt64 => value!(array, i, UInt64Type).to_string(),
        DataType::Float16 => value!(array, i, Float16Type).to_string(),
        DataType::Float32 => value!(array, i, Float32Type).to_string(),
        DataType::Float64 => value!(array, i, Float64Type).to_string(),
        DataType::Decimal32(..) => decimal!(Decimal32Type),
        DataType::Decimal64(..) => decimal!(Decimal64Type),
        DataType::Decimal128(..) => decimal!(Decimal128Type),
        DataType::Decimal256(..) => decimal!(Decimal256Type),
        DataType::Boolean => array.as_boolean_opt()?.value(i).to_string(),
        _ => return None,
    })
}

/// A date or a time.
fn moment(array: &dyn Array, i: usize) -> Option<String> {
    let (count, per_second) = match array.data_type() {
        DataType::Date32 => return Some(date(i64::from(value!(array, i, Date32Type)) * 86_400)),
        DataType::Date64 => return Some(date(value!(array, i, Date64Type).div_euclid(1000))),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => (value!(array, i, TimestampSecondType), 1),
            TimeUnit::Millisecond => (value!(array, i, TimestampMillisecondType), 1_000),
            TimeUnit::Microsecond => (value!(array, i, TimestampMicrosecondType), 1_000_000),
            TimeUnit::Nanosecond => (value!(array, i, TimestampNanosecondType), 1_000_000_000),
        },
        _ => return None,
    };
    let text = time::format(count.div_euclid(per_second));
    let fraction = count.rem_euclid(per_second);
    if fraction == 0 {
        return Some(text);
    }
    let decimals = (per_second + fraction).to_string();
    let decimals = decimals[1..].trim_end_matches('0');
    Some(text.replace('Z', &format!(".{decimals}Z")))
}

/// The day of a time.
fn date(seconds: i64) -> String {
    let mut text = time::format(seconds);
    text.truncate(text.find('T').unwrap_or(text.len()));
    text
}
