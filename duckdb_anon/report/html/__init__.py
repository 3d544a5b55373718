"""The page of anon_report: sections, charts, styles. Needs the extra `report`."""
