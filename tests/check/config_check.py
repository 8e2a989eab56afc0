# SPDX-License-Identifier: Apache-2.0
"""What the checks of both configs share: a schema, the test data, a page, and what is wrong."""
import json
import re

import jsonschema


def refuse_repeats(pairs):
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a member is there twice")
    return dict(pairs)


def refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def allowed(member):
    """What the page must say of a member's values."""
    if "enum" in member:
        return ", ".join(f"`{json.dumps(value)}`" for value in member["enum"])
    if member["type"] == "boolean":
        return "`true`, `false`"
    if member["type"] == ["object", "boolean"] and member["not"] == {"const": True}:
        return allowed({**member, "type": "object"}) + "; `false`"
    if member["type"] == "object":
        return ", ".join(f"`{name}`" for name in member["properties"])
    if member["type"] == "array":
        count = f"{member['minItems']:,} to {member['maxItems']:,}"
        if "enum" in member["items"]:
            return f"{count} of {allowed(member['items'])}"
        if member["items"]["type"] == "object":
            return f"{count} objects"
        if member["items"]["type"] == "string":
            return f"{count} strings of {member['items']['minLength']} to {member['items']['maxLength']} bytes"
        return f"{count} integers from {allowed(member['items'])}"
    if member["type"] == "string":
        return f"`{json.dumps(member['examples'][0])}` and the like, {member['maxLength']} characters"
    multiple = f", a multiple of {member['multipleOf']}" if "multipleOf" in member else ""
    if {"const": member["minimum"]} in member.get("anyOf", []):
        least = next(choice["minimum"] for choice in member["anyOf"] if "minimum" in choice)
        return f"{member['minimum']:,}, and {least:,} to {member['maximum']:,}{multiple}"
    return f"{member['minimum']:,} to {member['maximum']:,}{multiple}"


class ConfigCheck:
    def __init__(self, schema, page):
        self.schema = json.loads(schema.read_text())
        jsonschema.Draft202012Validator.check_schema(self.schema)
        self.validator = jsonschema.Draft202012Validator(self.schema)
        self.page = page
        self.failures = 0

    def complain(self, text):
        print(text)
        self.failures += 1

    def suits_the_schema(self, text):
        """False for what is not JSON as well: a schema speaks of values only."""
        try:
            value = json.loads(text.decode(), object_pairs_hook=refuse_repeats, parse_constant=refuse_constant)
        except (ValueError, RecursionError):
            return False
        return self.validator.is_valid(value)

    def judge_folders(self, folders):
        """Pairs of a folder and the function that judges a file of it."""
        counts = {}
        for folder, judge in folders:
            paths = sorted(folder.glob("*.json"))
            counts[folder] = len(paths)
            for path in paths:
                judge(path)
            expected = len(list(folder.glob("*.expected")))
            if counts[folder] < 5 or expected not in (0, counts[folder]):
                self.complain(f"{folder}: files are missing")

    def members(self):
        """The members, and those of members, by name."""
        for name, member in self.schema["properties"].items():
            yield name, member
            for inner, value in (member.get("properties") or member.get("items", {}).get("properties", {})).items():
                yield f"{name}.{inner}", value

    def judge_page(self):
        """The page's table has a row for each member, and the schema's values in it."""
        rows = {}
        for row in re.findall(r"^\| `([a-z_.]+)` (\|.*)\|$", self.page.read_text(), re.MULTILINE):
            rows[row[0]] = [cell.strip() for cell in row[1].strip("|").split(" | ")]
        named = dict(self.members())
        if list(rows) != list(named):
            self.complain(f"{self.page}: has the members {list(rows)}, the schema {list(named)}")
            return
        for name, member in named.items():
            kind, ranges, default, meaning, example = rows[name]
            types = member["type"] if isinstance(member["type"], list) else [member["type"]]
            if kind != " or ".join(types) or ranges != allowed(member):
                self.complain(f"{self.page}: {name}: is {member['type']}, allowed {allowed(member)}; not {kind}, {ranges}")
            if "default" in member and default != f"`{json.dumps(member['default'])}`":
                self.complain(f"{self.page}: {name}: the default is {member['default']}, not {default}")
            if not default or not meaning or not member["description"]:
                self.complain(f"{self.page}: {name}: something is left empty")
            value = json.loads(example.strip("`"))
            if not self.validator.is_valid(value) or name.split(".")[0] not in value:
                self.complain(f"{self.page}: {name}: the example is none: {example}")
